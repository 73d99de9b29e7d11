package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
)

// Upload brings an output to where a commit can name it. b is borrowed until Upload returns.
func (r *repo) Upload(ctx context.Context, o ledger.Output, b io.ReaderAt) error {
	return r.upload(ctx, r.work, blob(o.File(), b))
}

// UploadFile uploads a side file that is in the folder.
func (r *repo) UploadFile(ctx context.Context, s SideFile) error {
	file, err := r.from.Open(s.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.upload(ctx, r.main, blob(s.File(), file))
}

// upload brings files to where a commit of a branch can name them.
func (r *repo) upload(ctx context.Context, on *branch, files ...hub.Blob) error {
	ops, err := r.push.Hub.Upload(ctx, r.push.Repo, on.name, files...)
	if err != nil {
		return r.whyGone(ctx, err)
	}
	for _, op := range ops {
		r.uploaded.Store(op.Path, op)
	}
	return nil
}

// uploadRest uploads, all together, what is left at the end: the side files that the run has
// written, and the copied files and outputs in its folder that aren't uploaded yet.
func (r *repo) uploadRest(ctx context.Context, res *Result) (err error) {
	var rest []hub.Blob
	for _, o := range res.Outputs {
		if o.Uploaded || o.Committed {
			continue
		}
		counted, end := res.Sending(closedFile{r.from, o.Path}, o.Size)
		defer func() { end(err == nil) }()
		rest = append(rest, blob(o.File(), counted))
	}
	for _, s := range res.Files {
		_, sent := r.uploaded.Load(s.Path)
		switch {
		case s.Remote || sent && s.Data == nil:
		case s.Data != nil:
			rest = append(rest, blob(s.File(), bytes.NewReader(s.Data)))
		default:
			rest = append(rest, blob(s.File(), closedFile{r.from, s.Path}))
		}
	}
	return r.upload(ctx, r.main, rest...)
}

// A closedFile is a file of a folder that is open only while it's read. A last commit may have
// thousands, and some systems allow a process 1,024 open files.
type closedFile struct {
	folder *Folder
	name   string
}

func (c closedFile) ReadAt(p []byte, off int64) (int, error) {
	f, err := c.folder.Open(c.name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(p, off)
}

func blob(f names.File, content io.ReaderAt) hub.Blob {
	return hub.Blob{Path: f.Path, Size: f.Size, SHA256: f.SHA256, Reader: content}
}

// Commit commits uploaded outputs together with the journal that lists them and all others that are
// committed.
func (r *repo) Commit(ctx context.Context, outputs []ledger.Output, l *ledger.Ledger) error {
	c := change{
		branch: r.work, parent: r.work.head, outputs: outputs, ledger: l,
		summary: fmt.Sprintf("Add %d DF11 files (%s and on)", len(outputs), outputs[0].Path),
	}
	for _, o := range outputs {
		c.ops = append(c.ops, r.op(o.File()))
	}
	return r.commit(ctx, c)
}

// A change is a commit to make on a branch: outputs with their journal, or with result the last
// commit, which makes main complete.
type change struct {
	branch               *branch
	parent               string
	summary, description string
	outputs              []ledger.Output
	ledger               *ledger.Ledger // of the outputs
	ops                  []hub.Op
	result               *Result
	mended               bool // main was found to be a mixture once
}

// commitTries bounds how often a commit is rebuilt on a head that moved. Parts on other machines
// move it.
const commitTries = 16

// commit commits on top of the parent, and again on the new head if somebody else was quicker and
// the branch is still this conversion's. The Hub takes a commit only if its parent is the branch's
// head.
func (r *repo) commit(ctx context.Context, c change) error {
	for try := 1; ; try++ {
		if err := r.recheck(ctx, c.branch, c.parent); err != nil {
			return err
		}
		ops, err := r.opsOn(ctx, &c)
		if err != nil {
			return err
		}
		done, err := r.push.Hub.Commit(ctx, r.push.Repo, c.branch.name, hub.CommitRequest{
			Summary: c.summary, Description: c.description, Parent: c.parent, Ops: ops,
			Before: r.admit,
		})
		if err == nil {
			c.branch.committed(done, ops...)
			if c.result != nil && len(ops) > 0 {
				return r.checkPublished(ctx, c)
			}
			return nil
		}
		if !errors.Is(err, hub.ErrConflict) || try == commitTries {
			return r.whyGone(ctx, err)
		}
		// let others go first
		pause := rand.N(min(100*time.Millisecond<<try, 10*time.Second))
		if err := r.push.Hub.Pause(ctx, "another machine commits to "+r.push.Repo, pause); err != nil {
			return err
		}
		if c.parent, err = r.push.Hub.Head(ctx, r.push.Repo, c.branch.name); err != nil {
			return err
		}
	}
}

// opsOn returns the operations of a change on its parent, which it may replace. The journal also
// lists what other runs have committed meanwhile, because it may replace their journal. If another run
// of the same conversion has finished the branch with the outputs, there is nothing left to commit.
func (r *repo) opsOn(ctx context.Context, c *change) ([]hub.Op, error) {
	if c.result != nil {
		tree, err := r.treeForResult(ctx, c)
		if err != nil {
			return nil, err
		}
		return r.lastOps(*c, tree), nil
	}
	in := c.branch.in
	differs := func(o ledger.Output) bool { return !in.Holds(o.File()) }
	if in.ByPlan && !slices.ContainsFunc(c.outputs, differs) {
		return nil, nil
	}
	journal := c.ledger.ForRepo(in.Ours(), c.outputs)
	c.branch.sent = true
	return append(slices.Clone(c.ops), hub.FileOp(c.branch.at.journal, journal)), nil
}

// op puts a file into a commit. This run or an earlier one has uploaded the file, or the Hub has
// copied it.
func (r *repo) op(f names.File) hub.Op {
	if op, ok := r.uploaded.Load(f.Path); ok {
		return op.(hub.Op)
	}
	return hub.LFSOp(f.Path, f.SHA256, f.Size)
}
