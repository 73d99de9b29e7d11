package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
)

// Upload brings an output to where a commit can name it. b is borrowed until Upload returns.
func (r *Repo) Upload(ctx context.Context, o ledger.Output, b io.ReaderAt) error {
	return r.upload(ctx, r.work, blob(o.File(), b))
}

// UploadFile uploads a side file that is in the folder.
func (r *Repo) UploadFile(ctx context.Context, f *Folder, s SideFile) error {
	file, err := f.Open(s.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.upload(ctx, r.main, blob(s.File(), file))
}

// upload brings files to where a commit of a branch can name them.
func (r *Repo) upload(ctx context.Context, on *branch, files ...hub.Blob) error {
	ops, err := r.Hub.Upload(ctx, r.Repo, on.name, files...)
	if err != nil {
		return r.whyGone(ctx, err)
	}
	for _, op := range ops {
		r.uploaded.Store(op.Path, op)
	}
	return nil
}

// uploadRest uploads together what is left for the end: the side files that the run has written,
// and the copied ones and outputs in its folder that it has not uploaded.
func (r *Repo) uploadRest(ctx context.Context, f *Folder, res *Result) (err error) {
	var rest []hub.Blob
	for _, o := range res.Outputs {
		if o.Uploaded || o.Committed {
			continue
		}
		file, openErr := f.Open(o.Path)
		if openErr != nil {
			return openErr
		}
		defer file.Close()
		counted, end := res.Sending(file, o.Size)
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
			file, err := f.Open(s.Path)
			if err != nil {
				return err
			}
			defer file.Close()
			rest = append(rest, blob(s.File(), file))
		}
	}
	return r.upload(ctx, r.main, rest...)
}

func blob(f names.File, content io.ReaderAt) hub.Blob {
	return hub.Blob{Path: f.Path, Size: f.Size, SHA256: f.SHA256, Reader: content}
}

// Commit commits uploaded outputs together with the journal that lists them and all others that are
// committed.
func (r *Repo) Commit(ctx context.Context, outputs []ledger.Output, l *ledger.Ledger) error {
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
func (r *Repo) commit(ctx context.Context, c change) error {
	for try := 1; ; try++ {
		if err := r.recheck(ctx, c.branch, c.parent); err != nil {
			return err
		}
		ops, err := r.opsOn(ctx, c)
		if err != nil {
			return err
		}
		done, err := r.Hub.Commit(ctx, r.Repo, c.branch.name, hub.CommitRequest{
			Summary: c.summary, Description: c.description, Parent: c.parent, Ops: ops,
		})
		if err == nil {
			c.branch.committed(done)
			if c.result != nil && len(ops) > 0 {
				return r.look(ctx, c)
			}
			return nil
		}
		if !errors.Is(err, hub.ErrConflict) || try == commitTries {
			return r.whyGone(ctx, err)
		}
		// let others go first
		pause := rand.N(min(100*time.Millisecond<<try, 10*time.Second))
		if err := r.Hub.Pause(ctx, "another machine commits to "+r.Repo, pause); err != nil {
			return err
		}
		if c.parent, err = r.Hub.Head(ctx, r.Repo, c.branch.name); err != nil {
			return err
		}
	}
}

// opsOn returns the operations of a change on its parent. The journal also lists what other runs
// have committed meanwhile, because it may replace their journal. If another run of the same
// conversion has finished the branch with the outputs, there is nothing left to commit.
func (r *Repo) opsOn(ctx context.Context, c change) ([]hub.Op, error) {
	if c.result != nil {
		tree, err := r.Hub.Files(ctx, r.Repo, c.parent)
		if err != nil {
			return nil, err
		}
		return r.lastOps(c, tree), nil
	}
	in := c.branch.Inspection
	differs := func(o ledger.Output) bool { return !in.Holds(o.File()) }
	if in.Made && !slices.ContainsFunc(c.outputs, differs) {
		return nil, nil
	}
	journal := c.ledger.ForRepo(c.branch.former(), c.outputs)
	c.branch.sent = true
	return append(slices.Clone(c.ops), hub.FileOp(c.branch.journal, journal)), nil
}

// op puts a file into a commit. This run has uploaded it, or it's stored: an earlier run has, or the
// Hub has copied it.
func (r *Repo) op(f names.File) hub.Op {
	if op, ok := r.uploaded.Load(f.Path); ok {
		return op.(hub.Op)
	}
	return hub.LFSOp(f.Path, f.SHA256, f.Size)
}

// Finish makes the repo complete in one last commit, which adds the small files, config.json among
// them, and deletes journals and stale files. After a refresh it is the only commit of main. Copied
// files and outputs that are not uploaded are in the folder. Finish fails if main would lack an
// output. It may be repeated.
func (r *Repo) Finish(ctx context.Context, f *Folder, res *Result) error {
	if err := r.uploadRest(ctx, f, res); err != nil {
		return err
	}
	c := change{
		branch: r.main, parent: r.main.head, result: res,
		summary: res.Summary, description: res.Description,
	}
	for _, s := range res.Files {
		c.ops = append(c.ops, r.op(s.File()))
	}
	if r.work != r.main {
		var err error
		if c.parent, err = r.Hub.Head(ctx, r.Repo, r.main.name); err != nil {
			return err
		}
	}
	return r.commit(ctx, c)
}

// lastOps is what makes a tree of main complete: the side files, every output that it does not
// hold, and deletions.
func (r *Repo) lastOps(c change, tree map[string]hub.FileInfo) []hub.Op {
	ops := slices.DeleteFunc(slices.Clone(c.ops), func(op hub.Op) bool {
		return op.Holds(tree) || op.Path == names.Card && c.branch.CardStays
	})
	for _, o := range c.result.Outputs {
		if tree[o.Path].File() != o.File() {
			ops = append(ops, r.op(o.File()))
		}
	}
	for _, p := range slices.Sorted(maps.Keys(tree)) {
		_, ours := c.branch.Ours[p]
		if (ours || c.branch.hasSent(p)) && !r.owner.writes(p) {
			ops = append(ops, hub.DeleteOp(p))
		}
	}
	return ops
}

// look ends a publication: main must hold now what was published. A Hub that does not read a
// commit's parent lets two programs write at the same time, and mixes what they bring. What is
// there instead is fine if it is a whole result of the plan, or a person's card. Otherwise look
// takes main apart, and completes it once more, unless others are at work.
func (r *Repo) look(ctx context.Context, c change) error {
	tree, err := r.Hub.Tree(ctx, r.Repo, r.main.name)
	if err != nil {
		return err
	}
	lost := &LostError{Where: r.Repo, Branch: r.main.name}
	for _, op := range r.lastOps(c, tree) {
		lost.Files = append(lost.Files, op.Path)
	}
	for name := range tree {
		if r.owner.loads(name) && !r.owner.writes(name) && r.main.versions[name] == "" {
			lost.Files = append(lost.Files, name)
		}
	}
	if len(lost.Files) == 0 {
		return nil
	}
	slices.Sort(lost.Files)
	_, in, err := r.inspect(ctx, r.main.judge, r.main.name, r.main.Inspection)
	if err == nil && in.Current {
		return nil
	}
	if in == nil { // no one else's claims are ours
		in = r.main.Inspection
	}
	lost.why = err
	before := r.main.head
	if err := r.takeApart(ctx, in); err != nil {
		return errors.Join(lost, err)
	}
	if c.mended || lost.why != nil || r.main.head == before {
		return lost
	}
	c.mended, c.parent = true, r.main.head
	return r.commit(ctx, c)
}

// takeApart takes config.json away from a main that is a mixture, and with it every file that is
// torn: a Hub takes it again only once it's gone.
func (r *Repo) takeApart(ctx context.Context, in *Inspection) error {
	var ops []hub.Op
	for _, name := range slices.Sorted(maps.Keys(in.Ours)) {
		if in.torn(name) || name == r.owner.config {
			ops = append(ops, hub.DeleteOp(name))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	done, err := r.Hub.Commit(ctx, r.Repo, r.main.name, hub.CommitRequest{
		Summary: "Take an incomplete DF11 model apart", Parent: r.main.head, Ops: ops})
	if err == nil {
		r.main.committed(done)
	}
	return err
}

// LostError says that a branch does not hold what was just published there: files of it differ, are
// gone, or came back.
type LostError struct {
	Where, Branch string
	Files         []string
	why           error // who it was; nil if that is not known
}

// Hint says what can be done about it.
func (e *LostError) Hint() string {
	return "see to it that nothing else publishes to " + e.Where +
		", and run the same command again with --force"
}

func (e *LostError) Error() string {
	s := fmt.Sprintf("%s of %s does not hold what was published: %s", e.Branch, e.Where,
		human.List(e.Files))
	if e.why != nil {
		s += " (" + e.why.Error() + ")"
	}
	return s
}
