package target

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"sync"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Upload brings an output to where a commit can name it. b is borrowed until Upload returns.
func (r *Repo) Upload(ctx context.Context, o ledger.Output, b io.ReaderAt) error {
	return r.upload(ctx, hub.Blob{Path: o.Path, Size: o.Size, SHA256: o.SHA256, Reader: b}, false)
}

// UploadFile is Upload for a side file that is in the folder.
func (r *Repo) UploadFile(ctx context.Context, f *Folder, s SideFile) error {
	file, err := os.Open(f.Path(s.Path))
	if err != nil {
		return err
	}
	defer file.Close()
	return r.upload(ctx, hub.Blob{Path: s.Path, Size: s.Size, SHA256: s.SHA256, Reader: file}, true)
}

func (r *Repo) upload(ctx context.Context, b hub.Blob, last bool) error {
	branch := r.at.work
	if last {
		branch = r.at.main
	}
	op, err := r.Hub.Upload(ctx, r.Repo, branch, b)
	if err != nil {
		return r.taken(ctx, err)
	}
	r.uploaded.put(b.Path, op)
	return nil
}

// Commit commits uploaded outputs together with the journal that knows them. Where another run of the same conversion has
// finished the target with them meanwhile, there is nothing left to commit.
func (r *Repo) Commit(ctx context.Context, outputs []ledger.Output, journal []byte) error {
	var ops []hub.Op
	for _, o := range outputs {
		ops = append(ops, r.op(o))
	}
	ops = append(ops, hub.FileOp(path.Join(journalDir, journalName(r.part)), journal))
	_, _, made := ledger.Claimed(journal)
	return r.commit(ctx, change{
		branch: r.at.work, parent: r.at.parent, made: made,
		summary: fmt.Sprintf("Add %d DF11 files (%s and on)", len(outputs), outputs[0].Path),
		ops: func(context.Context, string) ([]hub.Op, error) {
			if r.finishedWith(outputs) {
				return nil, nil
			}
			return ops, nil
		},
	})
}

// finishedWith reports whether the branch that is worked on is finished, as it was last seen, and holds all of these outputs.
func (r *Repo) finishedWith(outputs []ledger.Output) bool {
	r.at.mu.Lock()
	defer r.at.mu.Unlock()
	h := r.at.seen[r.at.work].holdings
	return h.Manifest != nil && h.Manifest.Plan.Digest == r.owner.Digest &&
		!slices.ContainsFunc(outputs, func(o ledger.Output) bool { return h.files[o.Path] != o.SHA256 })
}

// op puts an output into a commit of the branch that it was uploaded for. An earlier run may have uploaded it.
func (r *Repo) op(o ledger.Output) hub.Op {
	if op, ok := r.uploaded.get(o.Path); ok {
		return op
	}
	return hub.LFSOp(o.Path, o.SHA256, o.Size)
}

// uploads are what a commit has to name of everything that this run has uploaded, by path.
type uploads struct {
	mu  sync.Mutex
	ops map[string]hub.Op
}

func (u *uploads) put(path string, op hub.Op) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ops == nil {
		u.ops = map[string]hub.Op{}
	}
	u.ops[path] = op
}

func (u *uploads) get(path string) (op hub.Op, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	op, ok = u.ops[path]
	return op, ok
}

// Finish makes the repo complete: everything small in one last commit, config.json in it, journals and stale files out.
// After a refresh that commit is the only one that main sees. It is not made unless main then holds every output. It may be
// repeated.
func (r *Repo) Finish(ctx context.Context, res *Result) error {
	var side []hub.Op
	for _, s := range res.Files {
		op, err := r.sideOp(ctx, s)
		if err != nil {
			return err
		}
		side = append(side, op)
	}
	last := change{branch: r.at.main, parent: r.at.parent, made: map[string]string{}, summary: res.Summary, description: res.Description}
	for _, o := range res.Outputs {
		last.made[o.Path] = o.SHA256
	}
	if r.at.work != r.at.main {
		var err error
		if last.parent, err = r.Hub.Head(ctx, r.Repo, r.at.main); err != nil {
			return err
		}
	}
	last.ops = func(ctx context.Context, head string) ([]hub.Op, error) { return r.lastOps(ctx, head, side, res) }
	return r.commit(ctx, last)
}

// sideOp puts a side file into the last commit. What was copied is uploaded by now, or copied inside the Hub.
func (r *Repo) sideOp(ctx context.Context, s SideFile) (hub.Op, error) {
	if s.Remote {
		if r.main.tree[s.Path].SHA256 == s.SHA256 {
			return hub.Op{}, nil
		}
		return hub.LFSOp(s.Path, s.SHA256, s.Size), nil
	}
	if s.Data != nil {
		if err := r.upload(ctx, hub.Blob{Path: s.Path, Size: s.Size, SHA256: s.SHA256, Reader: bytes.NewReader(s.Data)}, true); err != nil {
			return hub.Op{}, err
		}
	}
	op, ok := r.uploaded.get(s.Path)
	if !ok {
		return op, fmt.Errorf("finish %s: %s was never uploaded", r.Repo, s.Path)
	}
	return op, nil
}

// lastOps is what makes a commit of main complete: the side files, every output that it does not hold, and deletions.
func (r *Repo) lastOps(ctx context.Context, head string, side []hub.Op, res *Result) ([]hub.Op, error) {
	tree, err := r.Hub.Tree(ctx, r.Repo, head)
	if err != nil {
		return nil, err
	}
	ops := slices.Clone(side)
	ours := map[string]bool{".gitattributes": true, ".gitignore": true}
	for _, s := range res.Files {
		ours[s.Path] = true
	}
	for _, o := range res.Outputs {
		ours[o.Path] = true
		if holds(tree, o) {
			continue
		}
		if !o.Committed {
			return nil, fmt.Errorf("finish %s: %s was never published", r.Repo, o.Path)
		}
		op := r.op(o)
		if op.Payload() == 0 { // it may be empty for the branch that it was uploaded for, not for another one
			op = hub.LFSOp(o.Path, o.SHA256, o.Size)
		}
		ops = append(ops, op)
	}
	for _, p := range slices.Sorted(maps.Keys(tree)) {
		foreign := res.KeepForeign && plan.IsSafetensors(p) && !r.owned[p]
		if !ours[p] && !foreign {
			ops = append(ops, hub.DeleteOp(p))
		}
	}
	return ops, nil
}

// holds reports whether a tree has an output, as far as the Hub knows.
func holds(tree map[string]hub.FileInfo, o ledger.Output) bool {
	e, ok := tree[o.Path]
	return ok && e.SHA256 == o.SHA256 && e.Size == o.Size
}
