package convert

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
		k.space = s.forwardJob().Space()
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
	g.SetLimit(budget.Copies)
	if k.wait { // small files take questions more than bytes
		g.SetLimit(budget.Uploads)
	}
	for i, f := range k.files {
		s := &out[i]
		s.OutputFile = metadata.OutputFile{Path: f.Path, Kind: metadata.KindCopied, Size: f.Size}
		if names.IsCommit(f.ETag) && !names.IsSHA256(f.ETag) {
			s.Blob = f.ETag // the hash that git gives a small file
		}
		if s.SHA256 = inside[f.Path]; s.SHA256 == "" && k.held(f) {
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

// held reports whether every target holds a file with the SHA-256 that the source's Hub states.
func (k *copier) held(f plan.File) bool {
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
	err = k.to.UploadFile(ctx, *s)
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
	h, blob := sha256.New(), hub.NewHash("git", s.Size)
	if k.Model.Local {
		defer func() { s.Blob = hex.EncodeToString(blob.Sum(nil)) }()
	}
	if k.folder.Found().Files[s.Path].Standing == publish.Equal {
		_, err = streams.Copy(ctx, io.MultiWriter(h, blob), in)
		s.SHA256 = hex.EncodeToString(h.Sum(nil))
		return err
	}
	w, err := k.folder.Create(s.Path, s.Size)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	if _, err = streams.Copy(ctx, io.MultiWriter(io.NewOffsetWriter(w, 0), h, blob), in); err != nil {
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

// duplicates lists the large files that the target's server may be able to copy from the source's
// storage.
func (k *copier) duplicates(ctx context.Context) []hub.FileInfo {
	if k.sendAll || k.folder.Stays {
		return nil
	}
	return k.Push.CanCopy(ctx, k.Model, k.files)
}

// duplicate asks the server to copy large files, and returns the SHA-256 of those it copied, by path.
// After any failure the files are fetched and uploaded instead.
func (k *copier) duplicate(ctx context.Context) map[string]string {
	ask := k.duplicates(ctx)
	if len(ask) == 0 {
		return nil
	}
	done, err := k.to.Copy(ctx, k.Model, ask)
	if err != nil {
		k.Log.Info("no copy inside the hub, uploading instead", "err", err)
	}
	return done
}
