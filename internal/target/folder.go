package target

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/filelock"
	"github.com/df11-convert/df11-convert/internal/folder"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/smallfile"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
)

// filesDir is where the outputs of a folder that does not keep them are, inside of the state folder.
const filesDir = "files"

// A Folder is where output files are made. Either it keeps them and is the user's, or it is a work folder, and each file is removed
// once it is uploaded. What else is in either is left alone.
type Folder struct {
	*folder.Folder
	Stays bool // the folder keeps its output files

	within      string   // where in the folder the output files are
	made        []string // outputs and copies, which do not stay
	owner       Owner
	part        string // names the journal
	*inspection        // before the run; of a folder that does not keep its outputs, nothing
}

// OpenFolder makes the folder, locks it, and refuses a folder with other weights. With stays, root keeps the result; else it is a work
// folder. part names this run's journal; perm is the most that anybody may do with the files.
func OpenFolder(ctx context.Context, root string, stays bool, w Owner, part string, p *plan.Plan, perm fs.FileMode) (*Folder, error) {
	f := &Folder{Stays: stays, owner: w, part: part, inspection: &inspection{}}
	if !stays {
		f.within = path.Join(stateDir, filesDir)
		for _, o := range p.OutputFiles {
			f.made = append(f.made, o.Path)
		}
		for _, c := range slices.Concat(p.Copied, p.Components) {
			f.made = append(f.made, c.Path)
		}
	}
	var err error
	if f.Folder, err = openFolder(root, stays, perm); err != nil {
		return nil, err
	}
	if stays {
		err = f.inspect(ctx)
	} else {
		err = f.removeCopies(p)
	}
	if err != nil {
		return nil, errors.Join(err, f.Leave())
	}
	return f, nil
}

// removeCopies removes the copies that a killed run has left: they are made again when it is their turn.
func (f *Folder) removeCopies(p *plan.Plan) error {
	for _, c := range slices.Concat(p.Copied, p.Components) {
		if err := f.Remove(c.Path); err != nil {
			return err
		}
	}
	return nil
}

// openFolder opens and locks a folder.
func openFolder(root string, stays bool, perm fs.FileMode) (*folder.Folder, error) {
	f, err := folder.Open(root, perm)
	if filelock.InUse(err) { // a run that ends just now tries to remove the folder of its state
		err = filelock.ErrLocked
	}
	if err != nil {
		return nil, &FolderError{Folder: root, Stays: stays, Err: err}
	}
	return f, nil
}

// FolderError says that a folder can't be used: it can't be made or written, another run has it, or others may change what is there.
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

// LockFolder opens a folder that keeps files, and locks it against other runs of whatever kind.
func LockFolder(root string, perm fs.FileMode) (*folder.Folder, error) {
	return openFolder(root, true, perm)
}

// snapshot has the files of the folder itself, the outputs of the plan wherever they are in it, and the journal of an earlier run.
// The version of a file is its size and time.
func (f *Folder) snapshot() (snapshot, error) {
	entries, err := fs.ReadDir(f.Root.FS(), ".")
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
	s := snapshot{where: f.Root.Name(), versions: map[string]string{}, read: func(_ context.Context, name string) ([]byte, error) {
		return smallfile.Read(f.Path(name), maxJournalBytes)
	}, sum: func(ctx context.Context, name string) (string, error) {
		st, err := f.Lstat(name)
		if err != nil {
			return "", err
		}
		return f.Sum(ctx, name, st.Size()), nil
	}}
	for name, judged := range names {
		if !judged {
			continue
		}
		if st, err := f.Lstat(name); err == nil {
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
func (f *Folder) Path(name string) string {
	return filepath.Join(f.Root.Name(), filepath.FromSlash(f.name(name)))
}

// name is the name of a file of the result in the folder.
func (f *Folder) name(name string) string { return path.Join(f.within, name) }

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
		return !o.Here || ctx.Err() == nil && f.Sum(ctx, f.name(o.Path), o.Size) == o.SHA256
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return l, nil
}

func (f *Folder) journal() string { return filepath.Join(f.State.Name(), journalName(f.part)) }

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
	return f.Folder.Create(f.name(name), size)
}

// Remove removes a file, if it is there.
func (f *Folder) Remove(name string) error { return f.Folder.Remove(f.name(name)) }

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
			if err := f.WriteFile(f.name(s.Path), s.Data); err != nil {
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
		if st, err := f.Lstat(f.name(o.Path)); err != nil || st.Size() != o.Size {
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

// Close gives the lock back. With done, it removes what this run has made but the result, by name, then the lock: once the lock is
// free, the folder is the next run's. It removes an empty work folder too.
func (f *Folder) Close(done bool) error {
	if !done {
		return f.Release()
	}
	err := spool.RemoveOthers(f.State, nil)
	if !f.Stays {
		err = errors.Join(err, f.removeMade())
	}
	root := f.Root.Name()
	err = errors.Join(err, f.Folder.Remove(path.Join(stateDir, journalName(f.part))), f.Leave())
	if !f.Stays {
		_ = os.Remove(root) // which removes no link, and nothing that is in use
	}
	return err
}

// removeMade removes the files that were to be uploaded, and the folders that they were in.
func (f *Folder) removeMade() (err error) {
	dirs := map[string]bool{f.within: true}
	for _, name := range f.made {
		err = errors.Join(err, f.Remove(name))
		for dir := path.Dir(f.name(name)); dir != f.within; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(dirs))) { // the deepest first
		_ = f.Folder.Remove(dir) // not if somebody has put something there
	}
	return err
}

// IsDiskFull reports whether an error comes from a full disk or quota.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.Errno(122)) // 122: EDQUOT on Linux
}
