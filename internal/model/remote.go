package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// remote is a store of a repo's files at one commit. Some may be on this machine.
type remote struct {
	here   *local
	client *hub.Client
	repo   string
	refs   map[string]hub.FileRef // by path
	pieces *readers               // nil for streams and small ranges only
	// offline, what the shared cache lacks
	commit string
	absent []string
}

// OpenHub opens a repo at a revision, "" for main, and reads its small files and headers. memory is
// that of [OpenLocal].
func OpenHub(ctx context.Context, c *hub.Client, repo, revision string, opt plan.Options,
	memory int64) (Source, *Model, error) {
	info, err := c.Info(ctx, repo, revision)
	if err != nil {
		return nil, nil, err
	}
	return OpenListed(ctx, c, info, repo, revision, opt, memory)
}

// OpenListed is OpenHub of a repo that the Hub has just described.
func OpenListed(ctx context.Context, c *hub.Client, info *hub.RepoInfo, repo, revision string,
	opt plan.Options, memory int64) (Source, *Model, error) {
	_, f, err := openRepo(c, info)
	if err != nil {
		return nil, nil, err
	}
	m := Described(info, c)
	m.Name, m.Origin.asked = NameOf(repo, info), revision
	m.history = &history{client: c, repo: info.ID, files: map[string][]hub.FileInfo{}}
	return openSource(ctx, f, m, opt, memory)
}

// OpenDF11Hub opens a DF11 repo at one commit. It reads weights in pieces and keeps at most
// pieceBytes of them; 0 means 96 MiB. Close it to stop reading ahead. memory is that of
// [OpenDF11Local].
func OpenDF11Hub(ctx context.Context, c *hub.Client, repo, revision string, memory,
	pieceBytes int64) (*DF11, error) {
	info, err := c.Info(ctx, repo, revision)
	if err != nil {
		return nil, err
	}
	r, f, err := openRepo(c, info)
	if err != nil {
		return nil, err
	}
	r.pieces = newReaders(ctx, pieceBytes)
	return openDF11(ctx, &DF11{Name: info.ID, Commit: info.SHA, Open: info.Open, hub: c, files: f}, memory)
}

// OpenOutputs opens those outputs of an unfinished conversion that refs name: some in a folder, the
// others in a repo. open opens an output of the folder; if it says [os.ErrNotExist], the output is
// in the repo. c is nil if all are in the folder. It keeps at most pieceBytes of the repo's
// weights. Close it.
func OpenOutputs(ctx context.Context, refs []hub.FileRef, open func(name string) (*os.File, error),
	c *hub.Client, pieceBytes int64) (*DF11, error) {
	here := newLocal("")
	var s store = here
	if c != nil {
		r := newRemote(c, "", refs)
		r.here, r.pieces = here, newReaders(ctx, pieceBytes)
		s = r
	}
	f, err := newFiles(s, planFiles(refs))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, ref := range refs {
		file, err := open(ref.Path)
		if err == nil {
			err = here.keep(ref.Path, file)
		}
		if err != nil && (c == nil || !errors.Is(err, os.ErrNotExist)) {
			return nil, errors.Join(err, s.Close())
		}
	}
	d := &DF11{files: f}
	if err := d.readHeaders(ctx, f.list); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return d, nil
}

// Errors about repos that hold no model yet.
var (
	ErrUnfinished = hint.On(errors.New("the conversion to it hasn't ended"), hint.Unfinished)
	ErrEmpty      = hint.On(errors.New("the repo holds nothing yet"), hint.EmptyRepo)
)

// checkBegun returns an error about a repo without a model: a run made it, or it holds nothing at
// all.
func checkBegun(info *hub.RepoInfo) error {
	var other, journal, config bool
	for _, f := range info.Files {
		other = other || f.Path != names.Attributes // the Hub adds it to a new repo
		journal = journal || names.IsJournal(f.Path)
		config = config || f.Path == names.Config
	}
	switch {
	case journal && !config:
		return ErrUnfinished
	case !other:
		return ErrEmpty
	}
	return nil
}

// openRepo opens the files of a repo at a commit.
func openRepo(c *hub.Client, info *hub.RepoInfo) (*remote, *files, error) {
	if err := checkBegun(info); err != nil {
		return nil, nil, err
	}
	r := newRemote(c, info.ID, refsOf(info))
	r.commit, r.absent = info.SHA, info.Absent
	f, err := newFiles(r, planFiles(refsOf(info)))
	return r, f, err
}

func newRemote(c *hub.Client, repo string, refs []hub.FileRef) *remote {
	r := &remote{here: newLocal(""), client: c, repo: repo, refs: make(map[string]hub.FileRef, len(refs))}
	for _, ref := range refs {
		r.refs[ref.Path] = ref
	}
	return r
}

func refsOf(info *hub.RepoInfo) []hub.FileRef {
	var refs []hub.FileRef
	for _, x := range info.Files {
		refs = append(refs, x.Ref(info.ID, info.SHA))
	}
	return refs
}

// planFiles converts refs for a plan. A file's hash, if known, pins its content.
func planFiles(refs []hub.FileRef) []plan.File {
	var list []plan.File
	for _, ref := range refs {
		list = append(list, plan.File{Path: ref.Path, Size: ref.Size,
			ETag: ref.Hash()})
	}
	return list
}

// OpenFile streams a whole file, from the shared cache if that has a good copy. The last read fails
// with a SourceError if the hash isn't the published one.
func (r *remote) OpenFile(ctx context.Context, path string) (io.ReadCloser, error) {
	ref, ok := r.refs[path]
	if !ok {
		return nil, fmt.Errorf("%s: no such file in the repo: %w", path, os.ErrNotExist)
	}
	r.client.CheckCached(ctx, ref) // so that Stream doesn't use a damaged copy
	s, err := r.client.Stream(ctx, ref, 0, ref.Size)
	if err != nil {
		return nil, err
	}
	want := ref.Hash()
	if want == "" {
		return s, nil
	}
	return &checkedReader{s, hub.NewHash(want, ref.Size), want, ref.Path}, nil
}

func (r *remote) read(ctx context.Context, path string, limit int64) ([]byte, error) {
	return r.client.ReadFile(ctx, r.refs[path], limit)
}

func (r *remote) hold(paths []string) error {
	lacks := slices.DeleteFunc(slices.Clone(paths),
		func(path string) bool { return !slices.Contains(r.absent, path) })
	if len(lacks) == 0 {
		return nil
	}
	return r.client.Missing(r.repo, r.commit, lacks)
}

func (r *remote) lacks(path string) bool { return slices.Contains(r.absent, path) }

func (r *remote) stream(ctx context.Context, path string, off, end int64) (io.ReadCloser, error) {
	return r.client.Stream(ctx, r.refs[path], off, end)
}

func (r *remote) weights(path string) io.ReaderAt {
	if here := r.held(path); here != nil {
		return here
	}
	return &pieceReader{r.pieces, path, r.ranges(path)}
}

func (r *remote) sparse(ctx context.Context, path string) io.ReaderAt {
	if here := r.held(path); here != nil {
		return here
	}
	return rangeReader{ctx, r.ranges(path)}
}

func (r *remote) held(path string) io.ReaderAt { return r.here.held(path) }

// unchanged returns nil, because the commit is pinned.
func (r *remote) unchanged(string) error { return nil }

func (r *remote) Recheck(ctx context.Context, path string) bool {
	if ctx.Err() != nil {
		return false
	}
	r.client.CheckCached(ctx, r.refs[path])
	if r.pieces != nil {
		r.pieces.drop(func(p *piece) bool { return p.path == path })
	}
	return true
}

func (r *remote) main(ctx context.Context, limit int64) (main plan.Source, err error) {
	info, err := r.client.Info(ctx, r.repo, "")
	if err != nil {
		return main, err
	}
	main.ID, main.Commit, main.Files = info.ID, info.SHA, planFiles(refsOf(info))
	for _, ref := range refsOf(info) {
		if ref.Path != names.ModelIndex {
			continue
		}
		if ref.Size > limit && ref.Size <= maxConfigBytes {
			return main, &MemoryError{ref.Path, ref.Size, limit}
		}
		if main.ModelIndex, err = r.client.ReadFile(ctx, ref, limit); err != nil {
			return main, err
		}
	}
	return main, err
}

func (r *remote) FreeBuffers() { r.client.FreeBuffers() }

func (r *remote) Remote() bool { return true }

func (r *remote) Close() error {
	if r.pieces != nil {
		r.pieces.close()
	}
	return r.here.Close()
}

// ranges reads the bytes of one file at any offset.
type ranges struct {
	size int64
	read func(ctx context.Context, off, n int64) ([]byte, error)
}

func (r *remote) ranges(path string) ranges {
	ref := r.refs[path]
	return ranges{ref.Size, func(ctx context.Context, off, n int64) ([]byte, error) {
		return r.client.ReadRange(ctx, ref, off, n)
	}}
}

// A rangeReader reads a repo's file and keeps nothing.
type rangeReader struct {
	ctx context.Context //nolint:containedctx // io.ReaderAt has no room for one
	ranges
}

func (r rangeReader) ReadAt(p []byte, off int64) (int, error) {
	n := min(int64(len(p)), r.size-off)
	if n <= 0 {
		return 0, io.EOF
	}
	b, err := r.read(r.ctx, off, n)
	if err == nil && int(n) < len(p) {
		err = io.EOF
	}
	return copy(p, b), err
}
