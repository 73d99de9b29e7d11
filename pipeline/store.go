package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/filelock"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Names inside the folder that a run is given: stateDir is all that is not the result, the journal, the lock, the spools,
// and, in a work folder, output files until they are uploaded.
const (
	stateDir = ".df11-convert"
	lockName = "lock"
	filesDir = "files"
)

// A store is the local folder that output files are made in. With -o it is the user's folder and the files stay; else it
// lies inside of a work folder, whose other files are none of our business, and each file goes once it is uploaded.
type store struct {
	root  string // the folder that was given
	dir   string // of the output files
	state string // root/.df11-convert
	keep  bool
	lock  *filelock.Lock

	claims   []string           // weight files of the folder that are ours, or will be
	manifest *metadata.Manifest // of the finished conversion that was there; nil if there was none
}

// openStore makes the folder, locks it, clears it of what killed runs were writing, and refuses one that holds other
// weights.
func openStore(opt *Options) (*store, error) {
	s := &store{root: opt.OutDir, keep: opt.OutDir != ""}
	if !s.keep {
		s.root = opt.WorkDir
	}
	s.state = filepath.Join(s.root, stateDir)
	if s.dir = s.root; !s.keep {
		s.dir = filepath.Join(s.state, filesDir)
	}
	if err := s.acquire(); err != nil {
		return nil, fmt.Errorf("output folder %s: %w", s.root, err)
	}
	err := s.removeTemporary(opt.Plan)
	if err == nil && s.keep {
		err = s.own(opt.owner(), opt.Force)
	}
	if err != nil {
		return nil, errors.Join(err, s.leave())
	}
	return s, nil
}

// acquire makes the folders and locks them. Another run that ends just now may take the folder of the lock away.
func (s *store) acquire() (err error) {
	for range 10 {
		if err = os.MkdirAll(s.state, 0o777); errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) {
			continue // it went between the folder and the one in it, or between being there and a look at it
		}
		if err != nil {
			return err
		}
		if s.lock, err = filelock.Acquire(filepath.Join(s.state, lockName)); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return errors.Join(err, s.lock.Release())
	}
	return nil
}

// removeTemporary removes the files that killed runs have not finished, from every folder that this plan writes to.
func (s *store) removeTemporary(p *plan.Plan) error {
	dirs := map[string]bool{s.state: true, s.dir: true}
	for _, f := range p.OutputFiles {
		dirs[filepath.Dir(s.path(f.Path))] = true
	}
	for _, f := range slices.Concat(p.Copied, p.Components) {
		dirs[filepath.Dir(s.path(f.Path))] = true
	}
	for dir := range dirs {
		if err := atomicfile.RemoveTemporary(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// own finds out which weight files of the folder are ours, and refuses one with others. The journal of another plan is
// read for the last time: the next save is over it.
func (s *store) own(w owner, force bool) error {
	found, err := s.weights(w)
	if err != nil {
		return err
	}
	if s.manifest, err = s.readManifest(); err != nil {
		return err
	}
	names := w.ofManifest(s.manifest)
	if b, err := os.ReadFile(s.journalPath(Part{}.String())); err == nil {
		names = append(names, w.ofJournal(b)...)
	}
	owned := map[string]bool{}
	for _, name := range names {
		owned[name] = true
	}
	s.claims, err = w.take(s.dir, found, owned, s.manifest, force)
	return err
}

// weights lists the weight files that are there under the names of outputs, and all others of the folder itself.
func (s *store) weights(w owner) ([]string, error) {
	found := map[string]bool{}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if isWeightFile(e.Name()) {
			found[e.Name()] = true
		}
	}
	for name := range w.names {
		if _, err := os.Lstat(s.path(name)); err == nil {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// readManifest reads the manifest of a conversion that the folder holds; nil if there is none, or it is broken.
func (s *store) readManifest() (*metadata.Manifest, error) {
	b, err := os.ReadFile(s.path(manifestName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := metadata.ParseManifest(b)
	if err != nil {
		return nil, nil //nolint:nilerr // it tells nothing of anybody
	}
	return m, nil
}

// begin saves the first journal, which claims the files that the run will write. If the folder holds a finished
// conversion by another plan, it does not look finished from then on: its weights are overwritten one by one.
func (s *store) begin(l *ledger) error {
	if !s.keep {
		return nil
	}
	if err := s.saveJournal(l); err != nil {
		return err
	}
	if s.manifest == nil || s.manifest.Plan.Digest == l.digest {
		return nil
	}
	for _, o := range s.manifest.Outputs {
		if o.Kind == metadata.KindConfig && filepath.IsLocal(filepath.FromSlash(o.Path)) {
			if err := s.remove(o.Path); err != nil {
				return err
			}
		}
	}
	return s.remove(manifestName)
}

// removeStale removes the weights that former plans have left and this one does not write.
func (s *store) removeStale(w owner) error {
	for _, name := range s.claims {
		if !w.names[name] {
			if err := s.remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes a file, if it is there.
func (s *store) remove(name string) error {
	if err := os.Remove(s.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (s *store) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// create starts an output file of a known size.
func (s *store) create(name string, size int64) (*atomicfile.File, error) {
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	return atomicfile.Create(path, size)
}

// journal reads the ledger of an earlier run, which in a finished folder is the manifest; files that are gone or differ
// from it are dropped from it.
func (s *store) journal(ctx context.Context, o *Options) (*ledger, error) {
	digest, part := o.Plan.Digest(), o.journalName()
	b, err := os.ReadFile(s.journalPath(part))
	var l *ledger
	switch {
	case err == nil:
		l = usableLedger(b, digest, part)
	case errors.Is(err, os.ErrNotExist):
		l, err = o.stillOf(ctx, ledgerOfManifest(s.manifest, digest, part))
	}
	if err != nil {
		return nil, err
	}
	if l == nil {
		return newLedger(digest, part), nil
	}
	for _, o := range l.all() {
		if o.Uploaded {
			continue
		}
		sum, err := s.sum(ctx, o.Path, o.Size)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil || sum != o.SHA256 {
			l.drop(o.Path)
		}
	}
	return l, nil
}

func (s *store) journalPath(part string) string { return filepath.Join(s.state, part+".json") }

func (s *store) saveJournal(l *ledger) error {
	return atomicfile.WriteFile(s.journalPath(l.part), l.marshal())
}

// sum hashes a finished file of the store.
func (s *store) sum(ctx context.Context, name string, size int64) (string, error) {
	f, err := os.Open(s.path(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() != size {
		return "", fmt.Errorf("%s: size differs: %w", name, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return sumReader(ctx, io.NewSectionReader(f, 0, size))
}

// sumReader gives the sha256 of everything r has, in hex.
func sumReader(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.CopyBuffer(onlyWriter{h}, contextReader{ctx, r}, make([]byte, blockBytes)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// onlyWriter hides ReaderFrom, so that CopyBuffer uses the buffer that it is given.
type onlyWriter struct{ io.Writer }

// contextReader ends with the context.
type contextReader struct {
	ctx context.Context //nolint:containedctx // of the one transfer that this reader belongs to
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// close gives the lock back. With done, all of the state goes before that, so that nothing of the next holder's does; and
// a work folder, if nothing else is in it.
func (s *store) close(done bool) error {
	if !done {
		return s.lock.Release()
	}
	entries, err := os.ReadDir(s.state)
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.state, e.Name())))
		}
	}
	err = errors.Join(err, s.leave())
	if !s.keep {
		_ = os.Remove(s.root)
	}
	return err
}

// leave gives back the lock of a folder that nothing of ours is left in.
func (s *store) leave() error {
	err := s.lock.Remove()
	_ = os.Remove(s.state) // not if a former run has left something, or somebody else has come
	return err
}

// IsDiskFull tells whether an error comes from a full disk or quota.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.Errno(122)) // 122: EDQUOT on Linux
}
