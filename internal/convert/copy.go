package convert

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// A copier copies files from a source through a folder to the targets, and checks each against its
// published hash.
type copier struct {
	files  []plan.File
	from   model.Source
	model  *model.Model
	folder *publish.Folder
	push   publish.Target // nil: the folder keeps them
	to     publish.Remote // of push, once that's open
	found  []*publish.Inspection
	space  budget.Space // for files that don't stay in the folder
	// the files are small: they wait until the end and are uploaded together
	wait bool
	// the server may be able to copy them
	inside bool
}

// newCopier returns a copier of all files that the result takes unchanged. With sendAll, it asks no
// server to copy any.
func newCopier(j *job, t *targets, sendAll bool) *copier {
	k := &copier{files: j.carried(), from: j.Source, model: j.Model, folder: t.folder, push: j.Push,
		to: t.to, found: t.found(), space: budget.Space{Free: -1},
		inside: j.Push != nil && !sendAll && !t.folder.Stays}
	if !t.folder.Stays {
		k.space = forwardJob(j, t).Space()
	}
	var size int64
	for _, f := range k.files {
		size += f.Size
	}
	k.wait = size <= budget.WaitBytes && k.space.Check(size) == nil
	return k
}

// checkDisk refuses a disk that can't hold the largest file, unless the server can copy that file.
func (k *copier) checkDisk(ctx context.Context) error {
	var inside map[string]bool
	for _, f := range k.files {
		err := k.fits(f)
		if err != nil && inside == nil && k.inside {
			inside = k.push.CanCopy(ctx, k.model, k.files)
		}
		if err != nil && !inside[f.Path] {
			return err
		}
	}
	return nil
}

// isHeld reports whether every target holds a file with the SHA-256 that the source's Hub states.
func (k *copier) isHeld(f plan.File) bool {
	file := names.File{Path: f.Path, Size: f.Size, SHA256: f.ETag}
	return names.IsSHA256(f.ETag) && !slices.ContainsFunc(k.found,
		func(in *publish.Inspection) bool { return !in.Holds(file) })
}

// known returns, by path, the SHA-256 of files that the targets have: they had them, or the server
// copies large ones now. If it fails, the files are fetched and uploaded instead.
func (k *copier) known(ctx context.Context, log *slog.Logger) map[string]string {
	known := map[string]string{}
	if k.inside {
		copied, err := k.to.Copy(ctx, k.model, k.files)
		if err != nil {
			log.Info("no copy inside the hub, uploading instead", "err", err)
		}
		maps.Copy(known, copied)
	}
	for _, f := range k.files {
		if known[f.Path] == "" && k.isHeld(f) {
			known[f.Path] = f.ETag
		}
	}
	return known
}

// copyAll copies a few files at once, as many as the disk holds. It skips files of a known SHA-256,
// which the targets have. Unless all of them can wait for the end, a file that doesn't stay is
// removed once it's uploaded.
func (k *copier) copyAll(ctx context.Context, known map[string]string) ([]publish.SideFile, error) {
	disk := semaphore.NewWeighted(cmp.Or(k.space.ForCopies(), math.MaxInt64))
	out := make([]publish.SideFile, len(k.files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(budget.Copies)
	if k.wait { // small files cost requests more than bytes
		g.SetLimit(budget.Uploads)
	}
	for i, f := range k.files {
		s := &out[i]
		s.OutputFile = metadata.OutputFile{Path: f.Path, Kind: metadata.KindCopied, Size: f.Size,
			SHA256: known[f.Path]}
		if names.IsBlob(f.ETag) {
			s.Blob = f.ETag
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

// carry copies one file to the folder and, unless it waits, uploads it. Then it removes the file if
// the folder doesn't keep it.
func (k *copier) carry(ctx context.Context, s *publish.SideFile) error {
	err := k.copy(ctx, s)
	if err != nil || k.wait || k.push == nil {
		return err
	}
	err = k.to.UploadFile(ctx, *s)
	if !k.folder.Stays {
		err = errors.Join(err, k.folder.Remove(s.Path))
	}
	return err
}

// copy copies a file to the folder, unless it's there, and sets its SHA-256. If the file isn't as
// it was compared, the error is a ChangedError, and the folder doesn't get it.
func (k *copier) copy(ctx context.Context, s *publish.SideFile) error {
	in, err := k.from.OpenFile(ctx, s.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	h, blob := sha256.New(), hub.NewHash("git", s.Size)
	if k.model.Local { // no one has hashed its files
		defer func() { s.Blob = hex.EncodeToString(blob.Sum(nil)) }()
	}
	if k.folder.Found().Files[s.Path].Standing == publish.Equal {
		_, err = streams.Copy(ctx, io.MultiWriter(h, blob), in)
		s.SHA256 = hex.EncodeToString(h.Sum(nil))
		return cmp.Or(err, k.model.CheckCompared(s.Path, s.SHA256))
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
	if err = k.model.CheckCompared(s.Path, s.SHA256); err != nil {
		return err
	}
	if err = k.folder.Announce(s.File()); err != nil {
		return err
	}
	return w.Commit(s.Size)
}

// fits refuses a file that the disk can't hold.
func (k *copier) fits(f plan.File) error {
	if err := k.space.Check(f.Size); err != nil {
		return fmt.Errorf("copy %s: %w", f.Path, err)
	}
	return nil
}
