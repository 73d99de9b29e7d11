package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/filelock"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/smallfile"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Names inside the state folder.
const (
	lockName = "lock"
	filesDir = "files" // outputs of a folder that does not keep them
)

// A Folder is where output files are made. Either it keeps them and is the user's, or it lies inside a work folder, and each file
// is removed once it is uploaded. Other files of a work folder are left alone.
type Folder struct {
	State string // holds journal, lock and spools: all that is not the result
	Stays bool   // the folder keeps its output files

	root        string // the folder that was given
	dir         string // of the output files
	lock        *filelock.Lock
	owner       Owner
	part        string // names the journal
	*inspection        // before the run; of a folder that does not keep its outputs, nothing
}

// OpenFolder makes the folder, locks it, removes files that killed runs have not finished, and refuses a folder with other
// weights. With stays, root keeps the result; else it is a work folder. part names this run's journal.
func OpenFolder(ctx context.Context, root string, stays bool, w Owner, part string, p *plan.Plan) (*Folder, error) {
	f := &Folder{State: filepath.Join(root, stateDir), Stays: stays, root: root, dir: root, owner: w, part: part, inspection: &inspection{}}
	if !stays {
		f.dir = filepath.Join(f.State, filesDir)
	}
	if err := f.acquire(); err != nil {
		return nil, &FolderError{Folder: root, Stays: stays, Err: err}
	}
	err := f.removeTemporary(p)
	if err == nil && stays {
		err = f.inspect(ctx)
	}
	if filelock.InUse(err) { // a run that ends just now tries to remove the folder of its state
		err = &FolderError{Folder: root, Stays: stays, Err: filelock.ErrLocked}
	}
	if err != nil {
		return nil, errors.Join(err, f.leave())
	}
	return f, nil
}

// FolderError says that a folder can't be used: it can't be made or written, or another run has it.
type FolderError struct {
	Folder string
	Stays  bool // it was to keep the result; else it is a work folder
	Err    error
}

func (e *FolderError) Error() string {
	kind := "work folder"
	if e.Stays {
		kind = "output folder"
	}
	if errors.Is(e.Err, filelock.ErrLocked) {
		return fmt.Sprintf("%s %s: %v", kind, e.Folder, filelock.ErrLocked)
	}
	return fmt.Sprintf("%s %s: %v", kind, e.Folder, e.Err)
}

func (e *FolderError) Unwrap() error { return e.Err }

// acquire makes the folders and locks them. Another run that ends just now may take the folder of the lock away.
func (f *Folder) acquire() (err error) {
	for range 10 {
		if err = os.MkdirAll(f.State, 0o777); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			continue // it went between the folder and the one in it, or between being there and a look at it
		}
		if err != nil {
			return err
		}
		if f.lock, err = filelock.Acquire(filepath.Join(f.State, lockName)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o777); err != nil {
		return errors.Join(err, f.lock.Release())
	}
	return nil
}

// LockFolder makes a folder, and locks it until unlock against other runs of whatever kind.
func LockFolder(root string) (unlock func() error, err error) {
	f := &Folder{State: filepath.Join(root, stateDir), Stays: true, root: root, dir: root}
	if err := f.acquire(); err != nil {
		return nil, &FolderError{Folder: root, Stays: true, Err: err}
	}
	return f.leave, nil
}

// removeTemporary removes the files that killed runs have not finished, from every folder that this plan writes to, and copies that
// wait for their upload.
func (f *Folder) removeTemporary(p *plan.Plan) error {
	dirs := map[string]bool{f.State: true, f.dir: true}
	for _, o := range p.OutputFiles {
		dirs[filepath.Dir(f.Path(o.Path))] = true
	}
	for _, c := range slices.Concat(p.Copied, p.Components) {
		dirs[filepath.Dir(f.Path(c.Path))] = true
		if !f.Stays {
			if err := f.Remove(c.Path); err != nil {
				return err
			}
		}
	}
	for dir := range dirs {
		if err := atomicfile.RemoveTemporary(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// snapshot has the files of the folder itself, the outputs of the plan wherever they are in it, and the journal of an earlier run.
// The version of a file is its size and time.
func (f *Folder) snapshot() (snapshot, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return snapshot{}, err
	}
	names := map[string]bool{}
	for name := range f.owner.written {
		names[name] = plan.IsSafetensors(name)
	}
	for _, e := range entries {
		names[e.Name()] = plan.IsSafetensors(e.Name())
	}
	names[metadata.ManifestName] = true
	names[path.Join(stateDir, journalName(spans.Part{}.String()))] = true
	s := snapshot{where: f.root, versions: map[string]string{}, read: func(_ context.Context, name string) ([]byte, error) {
		return smallfile.Read(f.Path(name), maxJournalBytes)
	}, sum: func(ctx context.Context, name string) (string, error) {
		st, err := os.Lstat(f.Path(name))
		if err != nil {
			return "", err
		}
		return FileSum(ctx, f.Path(name), st.Size()), nil
	}}
	for name, judged := range names {
		if !judged {
			continue
		}
		if st, err := os.Lstat(f.Path(name)); err == nil {
			s.versions[name] = fmt.Sprint(st.Size(), st.ModTime().UnixNano())
		}
	}
	return s, nil
}

// inspect makes sure that the folder is this conversion's.
func (f *Folder) inspect(ctx context.Context) error {
	s, err := f.snapshot()
	if err == nil {
		f.inspection, err = f.owner.judge(ctx, s, nil, nil)
	}
	return err
}

// Path is where a file of the result lies.
func (f *Folder) Path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// Ledger reads what earlier runs have done in the folder: from their journal, else from the manifest of a finished
// conversion, unless the source has changed since. Outputs that are gone or differ from what it says are not in it.
func (f *Folder) Ledger(ctx context.Context, unchanged bool) (*ledger.Ledger, error) {
	l := ledger.New(f.owner.Digest, f.part, f.Stays)
	journal, err := smallfile.Read(f.journal(), maxJournalBytes)
	if err == nil {
		err = l.Read(journal)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
		if of := ledger.OfManifest(f.Manifest, f.owner.Digest, f.part, f.Stays); of != nil && unchanged {
			l = of
		}
	}
	if err != nil {
		return nil, err
	}
	l.Claim(f.owner.Source, f.former())
	l.Keep(func(o ledger.Output) bool {
		return !o.Here || ctx.Err() == nil && FileSum(ctx, f.Path(o.Path), o.Size) == o.SHA256
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return l, nil
}

// FileSum hashes a finished file; "" if it is not there, is no regular file, or has another size.
func FileSum(ctx context.Context, path string, size int64) string {
	file, err := smallfile.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if st, err := file.Stat(); err != nil || st.Size() != size {
		return ""
	}
	sum, err := streams.SHA256(ctx, io.NewSectionReader(file, 0, size))
	if err != nil {
		return ""
	}
	return sum
}

func (f *Folder) journal() string { return filepath.Join(f.State, journalName(f.part)) }

// Save writes the journal of a ledger, which every later change is appended to.
func (f *Folder) Save(l *ledger.Ledger) error { return l.Save(f.journal()) }

// Begin is called once the first journal claims the files that the run will write. It removes config and manifest of a finished
// conversion by another plan, whose weights the run overwrites one by one: the folder must not look finished.
func (f *Folder) Begin() error {
	if f.Manifest == nil || f.Manifest.Plan.Digest == f.owner.Digest {
		return nil
	}
	for _, o := range f.Manifest.Outputs {
		if o.Kind == metadata.KindConfig {
			if err := f.Remove(o.Path); err != nil {
				return err
			}
		}
	}
	return f.Remove(metadata.ManifestName)
}

// Create starts an output file of a known size.
func (f *Folder) Create(name string, size int64) (*atomicfile.File, error) {
	p := f.Path(name)
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		return nil, err
	}
	return atomicfile.Create(p, size)
}

// Remove removes a file, if it is there.
func (f *Folder) Remove(name string) error {
	if err := os.Remove(f.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Finish makes the folder complete: it checks that the folder is still this conversion's and holds every output, removes the
// weights that former plans have left, and writes the side files, config.json last. Copied files are there already. Finish may be
// repeated.
func (f *Folder) Finish(ctx context.Context, r *Result) error {
	if err := f.complete(ctx, r); err != nil {
		return err
	}
	for name := range f.Ours {
		if _, written := f.owner.written[name]; !written && plan.IsSafetensors(name) {
			if err := f.Remove(name); err != nil {
				return err
			}
		}
	}
	for _, s := range r.Files {
		if s.Data != nil {
			if err := f.write(s); err != nil {
				return fmt.Errorf("write %s: %w", s.Path, err)
			}
		}
	}
	return nil
}

// complete makes sure that nobody has changed the weights of the folder since the run began.
func (f *Folder) complete(ctx context.Context, r *Result) error {
	made := map[string]string{}
	for _, o := range r.Outputs {
		made[o.Path] = o.SHA256
		if st, err := os.Stat(f.Path(o.Path)); err != nil || st.Size() != o.Size {
			return fmt.Errorf("%s was removed or changed while the conversion ran: run it again, and it is made again", f.Path(o.Path))
		}
	}
	s, err := f.snapshot()
	if err != nil {
		return err
	}
	for _, side := range r.Files { // which this run has just written
		delete(s.versions, side.Path)
	}
	sum := s.sum
	s.sum = func(ctx context.Context, name string) (string, error) { // an output was hashed when it was made, and has its size
		if made[name] != "" {
			return made[name], nil
		}
		return sum(ctx, name)
	}
	_, err = f.owner.judge(ctx, s, f.inspection, made)
	return err
}

func (f *Folder) write(s SideFile) error {
	p := f.Path(s.Path)
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteFile(p, s.Data)
}

// Close gives the lock back. With done, it removes our state first, then the lock: once the lock is free, the folder is the next
// run's. It removes an empty work folder too.
func (f *Folder) Close(done bool) error {
	if !done {
		return f.lock.Release()
	}
	entries, err := os.ReadDir(f.State)
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.State, e.Name())))
		}
	}
	err = errors.Join(err, f.leave())
	if !f.Stays {
		_ = os.Remove(f.root)
	}
	return err
}

// leave gives back the lock of a folder that nothing of ours is left in.
func (f *Folder) leave() error {
	err := f.lock.Remove()
	_ = os.Remove(f.State) // not if a former run has left something, or somebody else has come
	return err
}

// IsDiskFull reports whether an error comes from a full disk or quota.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.Errno(122)) // 122: EDQUOT on Linux
}
