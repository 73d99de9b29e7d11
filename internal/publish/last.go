package publish

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/names"
)

// Finish makes the repo complete in one last commit, which adds the small files, config.json among
// them, and deletes journals and stale files. After a refresh it is the only commit of main. Copied
// files and outputs that are not uploaded are in the folder. Finish fails if main would lack an
// output. It may be repeated.
func (r *repo) Finish(ctx context.Context, res *Result) error {
	if err := r.uploadRest(ctx, res); err != nil {
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
		if c.parent, err = r.push.Hub.Head(ctx, r.push.Repo, r.main.name); err != nil {
			return err
		}
	}
	return r.commit(ctx, c)
}

// lastOps returns what completes a tree of main: the side files, every output that it lacks, and
// the deletion of our files that are no part of the result.
func (r *repo) lastOps(c change, tree map[string]hub.FileInfo) []hub.Op {
	b := c.branch
	ops := slices.DeleteFunc(slices.Clone(c.ops), func(op hub.Op) bool {
		return op.Holds(tree) || op.Path == names.Card && b.in.CardStays()
	})
	for _, o := range c.result.Outputs {
		if fileOf(tree[o.Path]) != o.File() {
			ops = append(ops, r.op(o.File()))
		}
	}
	for _, p := range slices.Sorted(maps.Keys(tree)) {
		ours := b.in.Files[p].Standing == Ours || b.sent && p == b.at.journal
		if ours && !r.run.writes(p) {
			ops = append(ops, hub.DeleteOp(p))
		}
	}
	return ops
}

// checkPublished rereads main after the last commit. Some Hubs ignore a commit's parent, so two
// programs can write at once and mix their files (KohakuHub does). So the program that looks last
// acts: if main is neither what it published nor another whole result of the plan, it takes main
// apart, so that no loader takes a mixture for a model. Then it completes main once more, unless
// others are at work.
func (r *repo) checkPublished(ctx context.Context, c change) error {
	tree, err := r.push.Hub.Tree(ctx, r.push.Repo, r.main.name)
	if err != nil {
		return err
	}
	lost := &LostError{Where: r.push.Repo, Branch: r.main.name}
	for _, op := range r.lastOps(c, tree) {
		lost.Files = append(lost.Files, op.Path)
	}
	for name := range tree {
		if r.run.loads(name) && !r.run.writes(name) && r.main.in.versions[name] == "" {
			lost.Files = append(lost.Files, name)
		}
	}
	if len(lost.Files) == 0 {
		return nil
	}
	slices.Sort(lost.Files)
	in, err := r.inspectMain(ctx)
	if err == nil && in.Current {
		return nil
	}
	if in == nil { // main couldn't be inspected: go by what was known of it
		in = r.main.in
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

// ReadBack fails with a [hub.WitnessError] if another client sees other files than were sent, and
// with an UnreadError if it can't look.
func (r *repo) ReadBack(ctx context.Context, res *Result) error {
	var sent []hub.FileInfo
	send := func(f names.File) {
		sent = append(sent, hub.FileInfo{Path: f.Path, Size: f.Size, SHA256: f.SHA256})
	}
	for _, o := range res.Outputs {
		send(o.File())
	}
	for _, f := range res.Files {
		if f.Path != names.Card || !r.Found().CardStays() {
			send(f.File())
		}
	}
	at := r.Where()
	err := r.push.Hub.Witness(ctx, at.Repo, at.Commit, sent, r.run.config, names.Manifest)
	if _, wrong := errors.AsType[*hub.WitnessError](err); err != nil && !wrong {
		return &UnreadError{err}
	}
	return err
}

// takeApart deletes config.json and every torn file from a mixed main. The Hub accepts a file of the
// same content again only after a deletion.
func (r *repo) takeApart(ctx context.Context, in *Inspection) error {
	var ops []hub.Op
	for _, f := range in.Ours() {
		if in.torn(f.Path) || f.Path == r.run.config {
			ops = append(ops, hub.DeleteOp(f.Path))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	done, err := r.push.Hub.Commit(ctx, r.push.Repo, r.main.name, hub.CommitRequest{
		Summary: "Take an incomplete DF11 model apart", Parent: r.main.head, Ops: ops})
	if err == nil {
		r.main.committed(done)
	}
	return err
}
