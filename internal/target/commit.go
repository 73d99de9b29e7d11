package target

import (
	"bytes"
	"context"
	"errors"
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
	return r.upload(ctx, r.branches.work, hub.Blob{Path: o.Path, Size: o.Size, SHA256: o.SHA256, Reader: b})
}

// UploadFile uploads a side file that is in the folder.
func (r *Repo) UploadFile(ctx context.Context, f *Folder, s SideFile) error {
	file, err := os.Open(f.Path(s.Path))
	if err != nil {
		return err
	}
	defer file.Close()
	return r.upload(ctx, r.branches.main, hub.Blob{Path: s.Path, Size: s.Size, SHA256: s.SHA256, Reader: file})
}

// upload brings a file to where a commit of a branch can name it.
func (r *Repo) upload(ctx context.Context, branch string, b hub.Blob) error {
	op, err := r.Hub.Upload(ctx, r.Repo, branch, b)
	if err != nil {
		return r.whyGone(ctx, err)
	}
	r.uploaded.put(b.Path, op)
	return nil
}

// Commit commits uploaded outputs together with the journal that lists them.
func (r *Repo) Commit(ctx context.Context, outputs []ledger.Output, journal []byte) error {
	var ops []hub.Op
	for _, o := range outputs {
		ops = append(ops, r.op(o))
	}
	ops = append(ops, hub.FileOp(path.Join(journalDir, journalName(r.part)), journal))
	_, _, made := ledger.Claimed(journal)
	return r.commit(ctx, change{
		branch: r.branches.work, parent: r.branches.parent, made: made, outputs: outputs, ops: ops,
		summary: fmt.Sprintf("Add %d DF11 files (%s and on)", len(outputs), outputs[0].Path),
	})
}

// A change is a commit to make on a branch: outputs with their journal, or with result the last commit, which makes main complete.
type change struct {
	branch, parent       string
	summary, description string
	made                 map[string]string // sha256 of every output that the run knows to be there then, by path
	outputs              []ledger.Output
	ops                  []hub.Op
	result               *Result
}

// commitTries bounds how often a commit is rebuilt on a head that moved. Parts on other machines move it.
const commitTries = 16

// commit commits on top of the parent, and again on the new head if somebody else was quicker and the branch is still this
// conversion's. The Hub takes a commit only if its parent is the branch's head.
func (r *Repo) commit(ctx context.Context, c change) error {
	for try := 1; ; try++ {
		if err := r.recheck(ctx, c.branch, c.parent, c.made); err != nil {
			return err
		}
		ops, err := r.opsOn(ctx, c)
		if err != nil {
			return err
		}
		done, err := r.Hub.Commit(ctx, r.Repo, c.branch, hub.CommitRequest{
			Summary: c.summary, Description: c.description, Parent: c.parent, Ops: ops,
		})
		if err == nil {
			r.branches.committed(c, done)
			return nil
		}
		if !errors.Is(err, hub.ErrConflict) || try == commitTries {
			return r.whyGone(ctx, err)
		}
		if err := r.branches.conflictPause(ctx, try); err != nil {
			return err
		}
		if c.parent, err = r.Hub.Head(ctx, r.Repo, c.branch); err != nil {
			return err
		}
	}
}

// opsOn gives the operations of a change on its parent. Where another run of the same conversion has finished the branch with the
// outputs, there is nothing left to commit.
func (r *Repo) opsOn(ctx context.Context, c change) ([]hub.Op, error) {
	if c.result != nil {
		return r.lastOps(ctx, c)
	}
	in := r.branches.knows(c.branch).inspection
	differs := func(o ledger.Output) bool { return in.versions[o.Path] != o.SHA256 }
	if in.Manifest != nil && in.Manifest.Plan.Digest == r.owner.Digest && !slices.ContainsFunc(c.outputs, differs) {
		return nil, nil
	}
	return c.ops, nil
}

// op puts an output into a commit of the branch that it was uploaded for. An earlier run may have uploaded it.
func (r *Repo) op(o ledger.Output) hub.Op {
	if op, ok := r.uploaded.get(o.Path); ok {
		return op
	}
	return hub.LFSOp(o.Path, o.SHA256, o.Size)
}

// uploads are the operations that put what this run has uploaded into a commit, by path.
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

// Finish makes the repo complete in one last commit, which adds the small files, config.json among them, and deletes journals and
// stale files. After a refresh it is the only commit of main. Finish fails if main would lack an output. It may be repeated.
func (r *Repo) Finish(ctx context.Context, res *Result) error {
	last := change{
		branch: r.branches.main, parent: r.branches.parent, made: map[string]string{}, result: res,
		summary: res.Summary, description: res.Description,
	}
	for _, s := range res.Files {
		op, err := r.sideOp(ctx, s)
		if err != nil {
			return err
		}
		last.ops = append(last.ops, op)
	}
	for _, o := range res.Outputs {
		last.made[o.Path] = o.SHA256
	}
	if r.branches.work != r.branches.main {
		var err error
		if last.parent, err = r.Hub.Head(ctx, r.Repo, r.branches.main); err != nil {
			return err
		}
	}
	return r.commit(ctx, last)
}

// sideOp puts a side file into the last commit. A copied file is uploaded by now, or copied inside the Hub.
func (r *Repo) sideOp(ctx context.Context, s SideFile) (hub.Op, error) {
	if s.Remote {
		if r.main.files[s.Path].SHA256 == s.SHA256 {
			return hub.Op{}, nil
		}
		return hub.LFSOp(s.Path, s.SHA256, s.Size), nil
	}
	if s.Data != nil {
		if err := r.upload(ctx, r.branches.main, hub.Blob{Path: s.Path, Size: s.Size, SHA256: s.SHA256, Reader: bytes.NewReader(s.Data)}); err != nil {
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
func (r *Repo) lastOps(ctx context.Context, c change) ([]hub.Op, error) {
	tree, err := r.Hub.Tree(ctx, r.Repo, c.parent)
	if err != nil {
		return nil, err
	}
	ops, res := slices.Clone(c.ops), c.result
	kept := map[string]bool{".gitattributes": true, ".gitignore": true}
	for _, s := range res.Files {
		kept[s.Path] = true
	}
	for _, o := range res.Outputs {
		kept[o.Path] = true
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
		foreign := res.KeepForeign && plan.IsSafetensors(p) && !r.ours[p]
		if !kept[p] && !foreign {
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
