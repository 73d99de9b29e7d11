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
	"strings"
	"syscall"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/filelock"
)

// stateDir is the folder inside an output folder where a run keeps its lock, its journal and its spools.
const stateDir = ".df11-convert"

// A store is the local folder that output files are made in. With -o it is the user's folder and the files stay; else it
// is a work folder and each file goes once it is uploaded.
type store struct {
	dir   string
	state string // dir/.df11-convert
	keep  bool
	lock  *filelock.Lock
}

// openStore makes the folder, locks it, and refuses one that holds other weights.
func openStore(dir string, keep, force bool, planned func(string) bool) (*store, error) {
	s := &store{dir: dir, state: filepath.Join(dir, stateDir), keep: keep}
	if err := os.MkdirAll(s.state, 0o777); err != nil {
		return nil, fmt.Errorf("output folder: %w", err)
	}
	lock, err := filelock.Acquire(filepath.Join(s.state, "lock"))
	if err != nil {
		return nil, fmt.Errorf("output folder %s: %w", dir, err)
	}
	s.lock = lock
	if err := s.refuseForeign(force, planned); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return s, nil
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
	if force {
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

// close gives the lock back. With done, the state goes too, and the whole folder if its files were not to stay.
func (s *store) close(done bool) error {
	err := s.lock.Release()
	if !done {
		return err
	}
	if s.keep {
		return errors.Join(err, os.RemoveAll(s.state))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// IsDiskFull tells whether an error comes from a full disk or quota.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.Errno(122)) // 122: EDQUOT on Linux
}
