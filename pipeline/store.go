package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/filelock"
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
	if err == nil {
		err = s.refuseForeign(opt.Force, plannedNames(opt.Plan))
	}
	if err != nil {
		return nil, errors.Join(err, s.lock.Release())
	}
	return s, nil
}

// acquire makes the folders and locks them. Another run that ends just now may take the folder of the lock away.
func (s *store) acquire() (err error) {
	for range 10 {
		if err = os.MkdirAll(s.state, 0o777); err != nil {
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

// ForeignFilesError says that an output folder or repo holds weights that this conversion does not write. The loader
// reads every .safetensors file it finds (docs/format.md §13), so they would end up in the model.
type ForeignFilesError struct {
	Where string
	Files []string
}

func (e *ForeignFilesError) Error() string {
	return fmt.Sprintf("%s holds other .safetensors files: %s", e.Where, summary(e.Files))
}

// summary names the first few of a list.
func summary(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

func (s *store) refuseForeign(force bool, planned func(string) bool) error {
	if force || !s.keep {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(s.dir, "*.safetensors"))
	if err != nil {
		return err
	}
	var foreign []string
	for _, f := range found {
		if name := filepath.Base(f); !planned(name) {
			foreign = append(foreign, name)
		}
	}
	if len(foreign) > 0 {
		return &ForeignFilesError{s.dir, foreign}
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

// journal reads the ledger of an earlier run; files that are gone or differ from it are dropped from it.
func (s *store) journal(ctx context.Context, digest, part string) (*ledger, error) {
	b, err := os.ReadFile(s.journalPath(part))
	if errors.Is(err, os.ErrNotExist) {
		return newLedger(digest, part), nil
	}
	if err != nil {
		return nil, err
	}
	l := usableLedger(b, digest, part)
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
	err = errors.Join(err, s.lock.Remove())
	_ = os.Remove(s.state) // not if somebody else has come
	if !s.keep {
		_ = os.Remove(s.root)
	}
	return err
}

// IsDiskFull tells whether an error comes from a full disk or quota.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.Errno(122)) // 122: EDQUOT on Linux
}
