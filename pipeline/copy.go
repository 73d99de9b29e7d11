package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/internal/target"
)

// A copier brings over the files that the result takes from the source as they are, each checked
// against its published hash.
type copier struct {
	*state
	files []plan.File
	disk  int64 // for files that do not stay; 0: no bound
}

// copier takes over all carried files. disk is for what does not stay; 0 is no bound.
func (s *state) copier(disk int64) *copier {
	if s.folder.Stays {
		disk = 0
	}
	return &copier{s, s.carried(), disk}
}

// copyAll copies a few files at once, as many as the disk budget holds: those that do not stay go
// as soon as they are uploaded. What a failed attempt has copied is not copied again.
func (k *copier) copyAll(ctx context.Context) ([]target.SideFile, error) {
	disk := forward.NewBudget(k.disk)
	inside := k.duplicate(ctx)
	out := make([]target.SideFile, len(k.files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(budget.Uploads)
	for i, f := range k.files {
		out[i] = target.SideFile{OutputFile: metadata.OutputFile{Path: f.Path,
			Kind: metadata.KindCopied, Size: f.Size}}
		if sha, ok := inside[f.Path]; ok {
			out[i].SHA256, out[i].Remote = sha, true
			continue
		}
		if out[i].SHA256 = k.copied[f.Path]; out[i].SHA256 != "" {
			continue
		}
		err := fits(f, k.disk)
		if err == nil {
			err = disk.Acquire(gctx, f.Size)
		}
		if err != nil {
			return nil, cmp.Or(g.Wait(), err)
		}
		g.Go(func() (err error) {
			defer disk.Release(f.Size)
			out[i].SHA256, err = k.carry(gctx, out[i])
			return err
		})
	}
	err := g.Wait()
	k.copied = map[string]string{}
	for _, f := range out {
		if !f.Remote {
			k.copied[f.Path] = f.SHA256
		}
	}
	return out, err
}

// carry brings one file over, to the repo as well. What need not stay is deleted then.
func (k *copier) carry(ctx context.Context, s target.SideFile) (sha string, err error) {
	if s.SHA256, err = k.copy(ctx, s); err != nil {
		return "", err
	}
	if k.repo != nil {
		err = k.repo.UploadFile(ctx, k.folder, s)
	}
	if !k.folder.Stays {
		err = errors.Join(err, k.folder.Remove(s.Path))
	}
	if err != nil {
		return "", err
	}
	return s.SHA256, nil
}

func (k *copier) copy(ctx context.Context, s target.SideFile) (sha string, err error) {
	in, err := k.Source.OpenFile(ctx, s.Path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	w, err := k.folder.Create(s.Path, s.Size)
	if err != nil {
		return "", err
	}
	defer w.Cleanup()
	h := sha256.New()
	if _, err := streams.Copy(ctx, io.MultiWriter(w, h), in); err != nil {
		return "", err
	}
	sha = hex.EncodeToString(h.Sum(nil))
	if err := k.folder.Announce(s.Path, sha); err != nil {
		return "", err
	}
	return sha, w.Commit(s.Size)
}

// check refuses a disk that does not hold the largest file, unless the Hub can copy it.
func (k *copier) check(ctx context.Context) error {
	large := slices.DeleteFunc(slices.Clone(k.files),
		func(f plan.File) bool { return fits(f, k.disk) == nil })
	if len(large) == 0 {
		return nil
	}
	inside := k.duplicates(ctx)
	for _, f := range large {
		if !slices.ContainsFunc(inside, func(d hub.FileInfo) bool { return d.Path == f.Path }) {
			return fits(f, k.disk)
		}
	}
	return nil
}

// fits refuses a file that is larger than the whole disk budget; 0 is no bound.
func fits(f plan.File, limit int64) error {
	if limit > 0 && f.Size > limit {
		return fmt.Errorf("copy %s: %w", f.Path, &budget.DiskError{Need: f.Size, Have: limit})
	}
	return nil
}

// duplicates lists the large files that the Hub may be able to copy from the source's store to the
// target's.
func (k *copier) duplicates(ctx context.Context) (list []hub.FileInfo) {
	if k.sendAll || k.Push == nil || k.folder.Stays ||
		k.Model.Endpoint != k.Push.Hub.Endpoint() {
		return nil
	}
	tree, err := k.Source.Tree(ctx, k.Model.Commit)
	if err != nil {
		return nil // then they are fetched and uploaded
	}
	for _, f := range k.files {
		if e := tree[f.Path]; e.SHA256 != "" && e.XetHash != "" {
			list = append(list, e)
		}
	}
	return list
}

// duplicate has the Hub copy large files, and gives the sha256 of those that it did, by path.
// Anything that goes wrong only means that they are fetched and uploaded instead.
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
		if _, bad := failed[d.SHA256]; !bad {
			done[d.Path] = d.SHA256
		}
	}
	return done
}
