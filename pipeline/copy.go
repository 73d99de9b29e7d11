package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// A copier brings the files that the result takes unchanged from the source. It checks each against
// its published hash.
type copier struct {
	*state
	files []plan.File
	space budget.Space // for files that don't stay
	// the files are small: they wait until the end and are uploaded together
	wait bool
}

// copier returns a copier of all copied files.
func (s *state) copier() *copier {
	k := &copier{s, s.carried(), budget.Space{Free: -1}, false}
	if !s.folder.Stays {
		k.space = s.way().Space()
	}
	var size int64
	for _, f := range k.files {
		size += f.Size
	}
	k.wait = size <= budget.WaitBytes && k.space.Check(size) == nil
	return k
}

// copyAll copies a few files at once, as many as the disk holds. Unless all of them can wait for
// the end, a file that doesn't stay is removed once it's uploaded.
func (k *copier) copyAll(ctx context.Context) ([]publish.SideFile, error) {
	disk := semaphore.NewWeighted(cmp.Or(k.space.ForCopies(), math.MaxInt64))
	inside := k.duplicate(ctx)
	out := make([]publish.SideFile, len(k.files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(budget.Uploads)
	for i, f := range k.files {
		s := &out[i]
		s.OutputFile = metadata.OutputFile{Path: f.Path, Kind: metadata.KindCopied, Size: f.Size}
		if s.SHA256 = inside[f.Path]; s.SHA256 == "" && k.there(f) {
			s.SHA256 = f.ETag
		}
		if s.Remote = s.SHA256 != ""; s.Remote {
			continue
		}
		err := k.fits(f)
		if err == nil && disk.Acquire(gctx, f.Size) != nil {
			err = context.Cause(gctx)
		}
		if err != nil {
			return nil, cmp.Or(g.Wait(), err)
		}
		g.Go(func() error {
			if !k.wait {
				defer disk.Release(f.Size)
			}
			return k.carry(gctx, s)
		})
	}
	return out, g.Wait()
}

// there reports whether every target holds a file with the SHA-256 that the source's Hub states.
func (k *copier) there(f plan.File) bool {
	file := names.File{Path: f.Path, Size: f.Size, SHA256: f.ETag}
	return names.IsSHA256(f.ETag) && !slices.ContainsFunc(k.found(),
		func(in *publish.Inspection) bool { return !in.Holds(file) })
}

// carry copies one file to the folder and, unless it waits, uploads it. Then it removes the file if
// the folder doesn't keep it.
func (k *copier) carry(ctx context.Context, s *publish.SideFile) error {
	err := k.copy(ctx, s)
	if err != nil || k.wait {
		return err
	}
	if k.repo != nil {
		err = k.repo.UploadFile(ctx, k.folder, *s)
	}
	if !k.folder.Stays {
		err = errors.Join(err, k.folder.Remove(s.Path))
	}
	return err
}

// copy copies a file to the folder, unless it's there, and sets its SHA-256.
func (k *copier) copy(ctx context.Context, s *publish.SideFile) error {
	in, err := k.Source.OpenFile(ctx, s.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	h := sha256.New()
	if k.folder.Kept[s.Path] {
		_, err = streams.Copy(ctx, h, in)
		s.SHA256 = hex.EncodeToString(h.Sum(nil))
		return err
	}
	w, err := k.folder.Create(s.Path, s.Size)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	if _, err = streams.Copy(ctx, io.MultiWriter(io.NewOffsetWriter(w, 0), h), in); err != nil {
		return err
	}
	s.SHA256 = hex.EncodeToString(h.Sum(nil))
	if err = k.folder.Announce(s.File()); err != nil {
		return err
	}
	return w.Commit(s.Size)
}

// check refuses a disk that can't hold the largest file, unless the Hub can copy that file.
func (k *copier) check(ctx context.Context) error {
	for _, f := range k.files {
		err := k.fits(f)
		inside := func(d hub.FileInfo) bool { return d.Path == f.Path }
		if err != nil && !slices.ContainsFunc(k.duplicates(ctx), inside) {
			return err
		}
	}
	return nil
}

// fits refuses a file that the disk can't hold.
func (k *copier) fits(f plan.File) error {
	if err := k.space.Check(f.Size); err != nil {
		return fmt.Errorf("copy %s: %w", f.Path, err)
	}
	return nil
}

// duplicates lists the large files that the Hub may be able to copy from the source's storage to
// the target's.
func (k *copier) duplicates(ctx context.Context) (list []hub.FileInfo) {
	large := func(f plan.File) bool { return names.IsSHA256(f.ETag) }
	if k.sendAll || k.Push == nil || k.folder.Stays || !slices.ContainsFunc(k.files, large) ||
		k.Model.Endpoint != k.Push.Hub.Endpoint() {
		return nil
	}
	tree, err := k.Push.Hub.Tree(ctx, k.Model.ID, k.Model.Commit)
	if err != nil {
		return nil // the files are fetched and uploaded instead
	}
	for _, f := range k.files {
		if e := tree[f.Path]; e.SHA256 != "" && e.XetHash != "" {
			list = append(list, e)
		}
	}
	return list
}

// duplicate asks the Hub to copy large files, and returns the SHA-256 of those it copied, by path.
// After any failure the files are fetched and uploaded instead.
func (k *copier) duplicate(ctx context.Context) map[string]string {
	ask := k.duplicates(ctx)
	if len(ask) == 0 {
		return nil
	}
	failed, err := k.repo.Hub.DuplicateFiles(ctx, k.Model.ID, k.repo.Repo, ask)
	if err != nil {
		k.Log.Info("no copy inside the hub, uploading instead", "err", err)
		return nil
	}
	done := map[string]string{}
	for _, d := range ask {
		if !failed[d.SHA256] {
			done[d.Path] = d.SHA256
		}
	}
	return done
}
