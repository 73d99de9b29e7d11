package publish

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/names"
)

// Finish makes the repo complete in one last commit, which adds the small files, config.json among
// them, and deletes journals and stale files. After a refresh it is the only commit of main. Copied
// files and outputs that are not uploaded are in the folder. Finish fails if main would lack an
// output. It may be repeated.
func (r *repo) Finish(ctx context.Context, res *Result) error {
	if err := r.keepSamples(ctx, res); err != nil {
		return err
	}
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

// keepSamples keeps a range of each output that an earlier run has committed and that this one has
// proved there, for ReadBack. Those that it takes over it hasn't read.
func (r *repo) keepSamples(ctx context.Context, res *Result) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sampledAtOnce)
	for _, o := range res.Outputs {
		if o.Committed && o.Proved {
			g.Go(func() error { return r.push.Hub.KeepSample(ctx, r.ref(o)) })
		}
	}
	return g.Wait()
}

// sampledAtOnce is how many ranges are read at once.
const sampledAtOnce = 8

// treeForResult lists the parent of the last commit. If the list names outputs there that only the
// work branch can hold, it deletes them first, and with them config.json.
//
// KohakuHub lists a path's newest SHA-256 for all branches, and a commit of that SHA-256 changes
// nothing, so main would keep its old bytes. After a deletion it takes them:
// https://github.com/KohakuBlueleaf/KohakuHub/blob/2facb54/src/kohakuhub/api/commit/routers/operations.py#L220
func (r *repo) treeForResult(ctx context.Context, c *change) (map[string]hub.FileInfo, error) {
	if r.work == r.main || c.mended {
		return r.push.Hub.Files(ctx, r.push.Repo, c.parent)
	}
	// not as it was listed before the batches
	tree, err := r.push.Hub.Tree(ctx, r.push.Repo, c.parent)
	if err != nil {
		return nil, err
	}
	var strays []string
	for _, o := range c.result.Outputs {
		if tree[o.Path].SHA256 == o.SHA256 && !r.main.in.claimsOutput(o.File()) {
			strays = append(strays, o.Path)
		}
	}
	if len(strays) == 0 {
		return tree, nil
	}
	if _, there := tree[r.run.config]; there {
		strays = append(strays, r.run.config)
	}
	r.main.head = c.parent
	if err := r.takeApart(ctx, strays); err != nil {
		return nil, err
	}
	c.parent = r.main.head
	return r.push.Hub.Tree(ctx, r.push.Repo, c.parent)
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
	if err := r.takeApart(ctx, r.torn(in)); err != nil {
		return errors.Join(lost, err)
	}
	if c.mended || lost.why != nil || r.main.head == before {
		return lost
	}
	c.mended, c.parent = true, r.main.head
	return r.commit(ctx, c)
}

// ReadBack lets another client read what was published. It fails with a [hub.WitnessError] if that
// client sees something else, and with an UnreadError if it can't look. What it sees wrong is taken
// apart: no loader takes main for a model, and the next run publishes these files again.
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
			sent[len(sent)-1].BlobID = f.Blob
		}
	}
	at := r.Where()
	dir := r.from.readBackFolder()
	defer r.from.removeReadBack()
	err := r.push.Hub.Witness(ctx, dir, at.Repo, at.Commit, sent, r.run.config, names.Manifest)
	if err == nil {
		return nil
	}
	seen, wrong := errors.AsType[*hub.WitnessError](err)
	if !wrong {
		return &UnreadError{err}
	}
	remove := map[string]bool{}
	if r.run.writes(r.run.config) {
		remove[r.run.config] = true
	}
	for _, f := range seen.Files {
		remove[f.Path] = true
	}
	for _, f := range seen.Files {
		if f.Gone {
			delete(remove, f.Path)
		}
	}
	if err := r.takeApart(ctx, slices.Sorted(maps.Keys(remove))); err != nil {
		return errors.Join(seen, err)
	}
	return fmt.Errorf("%w; they and config.json were deleted there, so no loader takes it for a model",
		seen)
}

// A folder for what another client downloads is in the run's folder, with this and random letters
// as its name. It isn't in the state, which may hold no links, because that client makes some. It
// doesn't count in the budget of disk: by then spools and uploaded outputs are gone, and it holds a
// list and a few small files.
const readBackPrefix = names.Ours + "-readback-"

// readBackNote is the file of the state that says which folder that is, so that a run removes no
// other one.
const readBackNote = "readback"

// readBackFolder makes that folder. It returns "", for the system's folder for temporary files, if
// the file system lacks the locks that the client needs, as exFAT does.
func (f *Folder) readBackFolder() string {
	name := readBackPrefix + rand.Text()
	if f.Unlocked() || f.note(readBackNote, name) != nil || f.disk.Root.Mkdir(name, 0o700) != nil {
		return ""
	}
	dir, err := filepath.Abs(filepath.Join(f.Name(), name)) // it may begin with a ~
	if err != nil {
		return ""
	}
	return dir
}

// note writes a small file of the state.
func (f *Folder) note(name, text string) error {
	file, err := disk.CreateIn(f.disk.State, name, ".", 0o600, 0)
	if err != nil {
		return err
	}
	return file.WriteAll([]byte(text))
}

// removeReadBack removes the folder that the note names, if it's one. What stays costs only space.
func (f *Folder) removeReadBack() {
	note := path.Join(names.StateDir, readBackNote)
	text, err := f.disk.Read(note, maxNote)
	name := string(text)
	if err != nil || text == nil {
		return
	}
	if st, err := f.disk.Root.Lstat(name); err == nil && st.IsDir() && isReadBack.MatchString(name) &&
		f.disk.Root.RemoveAll(name) != nil {
		return // the next run tries again
	}
	_ = f.disk.State.Remove(readBackNote)
}

// isReadBack matches the names that readBackFolder makes.
var isReadBack = regexp.MustCompile(`^` + regexp.QuoteMeta(readBackPrefix) + `[A-Z2-7]{26}$`)

// maxNote is the length of the longest note.
const maxNote = 64

// takeApart deletes config.json and every wrong file from main. A server with one row per path for
// all branches (KohakuHub) accepts a file of the same content again only after a deletion.
func (r *repo) takeApart(ctx context.Context, files []string) error {
	if len(files) == 0 {
		return nil
	}
	var ops []hub.Op
	for _, name := range files {
		ops = append(ops, hub.DeleteOp(name))
	}
	done, err := r.push.Hub.Commit(ctx, r.push.Repo, r.main.name, hub.CommitRequest{
		Summary: "Take an incomplete DF11 model apart", Parent: r.main.head, Ops: ops})
	if err == nil {
		r.main.committed(done)
	}
	return err
}

// torn lists what must go from a mixed main before it can be completed: the torn files, and
// config.json, so that no loader takes main for a model meanwhile.
func (r *repo) torn(in *Inspection) (files []string) {
	for _, f := range in.Ours() {
		if in.torn(f.Path) || f.Path == r.run.config {
			files = append(files, f.Path)
		}
	}
	return files
}
