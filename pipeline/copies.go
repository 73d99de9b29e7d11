package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// carriedFiles lists what the result takes over as it is: small files, and the other components of a pipeline.
func carriedFiles(p *plan.Plan) []plan.File { return slices.Concat(p.Copied, p.Components) }

// carried are those of the source's files that this run takes over; config.json is not among them if it is rewritten.
func (r *run) carried() []plan.File {
	return slices.DeleteFunc(carriedFiles(r.Plan), func(f plan.File) bool {
		return f.Path == r.configPath() && r.Plan.Config.Mode == plan.ConfigInsert
	})
}

// copyFiles brings the files that are carried over into the store and to the target, each checked against its published
// hash. A few are on their way at once, as many as the disk budget holds: those that do not stay go as soon as they are
// uploaded.
func (r *run) copyFiles(ctx context.Context) ([]small, error) {
	limit := r.diskLimit
	if r.store.keep {
		limit = 0
	}
	disk := newBudget("disk", limit)
	files, remote := r.carried(), r.duplicate(ctx)
	out := make([]small, len(files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.Uploads)
	for i, f := range files {
		if sha, ok := remote[f.Path]; ok {
			out[i] = small{path: f.Path, kind: metadata.KindCopied, size: f.Size, sha256: sha, remote: true}
			continue
		}
		if err := fits(f, limit); err != nil {
			return nil, cmp.Or(g.Wait(), err)
		}
		if err := disk.acquire(gctx, f.Size); err != nil {
			return nil, cmp.Or(g.Wait(), err)
		}
		g.Go(func() (err error) {
			defer disk.release(f.Size)
			out[i], err = r.carry(gctx, f)
			return err
		})
	}
	return out, g.Wait()
}

// carry brings one file over. What need not stay is uploaded and deleted.
func (r *run) carry(ctx context.Context, f plan.File) (small, error) {
	s, err := r.copyFile(ctx, f)
	for reads := 1; brokenFile(err) != "" && reads < sourceReads && ctx.Err() == nil; reads++ {
		r.Log.Warn("source file is not what was published, reading it again", "file", f.Path, "err", err)
		s, err = r.copyFile(ctx, f)
	}
	if err != nil {
		return s, fmt.Errorf("copy %s: %w", f.Path, err)
	}
	if r.store.keep {
		return s, nil
	}
	op, err := r.uploadOne(ctx, s)
	s.op = &op
	return s, errors.Join(err, os.Remove(r.store.path(f.Path)))
}

func (r *run) copyFile(ctx context.Context, f plan.File) (small, error) {
	s := small{path: f.Path, kind: metadata.KindCopied, size: f.Size}
	if !r.store.keep { // a run that was killed may have left one
		if err := os.Remove(r.store.path(f.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	in, err := r.Source.OpenFile(ctx, f.Path)
	if err != nil {
		return s, err
	}
	defer in.Close()
	w, err := r.store.create(f.Path, f.Size)
	if err != nil {
		return s, err
	}
	defer w.Cleanup()
	h := sha256.New()
	if _, err := io.CopyBuffer(onlyWriter{io.MultiWriter(w, h)}, contextReader{ctx, in}, make([]byte, blockBytes)); err != nil {
		return s, err
	}
	s.sha256 = hex.EncodeToString(h.Sum(nil))
	return s, w.Commit(f.Size)
}

// checkCopies refuses a disk that does not hold the largest file that is carried over, unless the Hub can copy it.
func (r *run) checkCopies(ctx context.Context) error {
	if r.store.keep || r.diskLimit == 0 || !r.Part.whole() {
		return nil
	}
	files := slices.DeleteFunc(r.carried(), func(f plan.File) bool { return f.Size <= r.diskLimit })
	if len(files) == 0 {
		return nil
	}
	inside := r.duplicates(ctx)
	for _, f := range files {
		if !slices.ContainsFunc(inside, func(d hub.Duplicate) bool { return d.Path == f.Path }) {
			return fits(f, r.diskLimit)
		}
	}
	return nil
}

// fits refuses a file that is larger than the whole disk budget; 0 is no bound.
func fits(f plan.File, limit int64) error {
	if limit > 0 && f.Size > limit {
		return fmt.Errorf("copy %s: %w", f.Path, &BudgetError{Need: f.Size, Have: limit})
	}
	return nil
}

// peakCopies is the most that the files that are carried over take of the disk at once, n of them on their way, if the Hub
// copies none of them by itself. A limit of 0 is none.
func peakCopies(p *plan.Plan, limit int64, n int) (peak int64) {
	var sizes []int64
	for _, f := range carriedFiles(p) {
		sizes = append(sizes, f.Size)
	}
	slices.Sort(sizes)
	for _, size := range sizes[max(0, len(sizes)-n):] {
		peak += size
	}
	if limit > 0 {
		peak = min(peak, limit)
	}
	return peak
}

// largestCopy is the size of the largest file that is carried over.
func largestCopy(p *plan.Plan) int64 { return peakCopies(p, 0, 1) }

// duplicates lists the large files that the Hub may be able to copy from the source's store to the target's.
func (r *run) duplicates(ctx context.Context) (list []hub.Duplicate) {
	src, ok := r.Source.(remoteSource)
	if !ok || r.pub == nil || r.store.keep || r.noDuplicates || src.hubClient().Endpoint() != r.Push.Hub.Endpoint() {
		return nil
	}
	tree, err := src.hubClient().Tree(ctx, r.Model.ID, r.Model.Commit)
	if err != nil {
		return nil // then they are fetched and uploaded
	}
	for _, f := range r.carried() {
		if e := tree[f.Path]; e.SHA256 != "" && e.XetHash != "" {
			list = append(list, hub.Duplicate{Path: f.Path, SHA256: e.SHA256, XetHash: e.XetHash})
		}
	}
	return list
}

// duplicate asks the Hub to copy large files, and gives the sha256 of those that it did, by path. Anything that goes wrong
// only means that they are fetched and uploaded instead.
func (r *run) duplicate(ctx context.Context) map[string]string {
	ask := r.duplicates(ctx)
	if len(ask) == 0 {
		return nil
	}
	failed, err := r.Push.Hub.DuplicateFiles(ctx, r.Model.ID, r.Push.Repo, ask)
	if err != nil {
		r.Log.Info("no copy inside the hub, uploading instead", "err", err)
		return nil
	}
	done := map[string]string{}
	for _, d := range ask {
		done[d.Path] = d.SHA256
	}
	maps.DeleteFunc(done, func(_, sha string) bool { _, bad := failed[sha]; return bad })
	return done
}
