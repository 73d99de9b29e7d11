package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// filesDir is where the outputs of a folder that does not keep them are, inside of the state
// folder.
const filesDir = "files"

// A Folder is where output files are made. Either it keeps them and is the user's, or it is a work
// folder, and each file is removed once it is uploaded. What else is in either is left alone.
type Folder struct {
	*Inspection      // before the run; at its end, what Finish has found
	Stays       bool // the folder keeps its output files

	disk   *disk.Folder
	within string // where in the folder the output files are
	judge  *judge
	ledger *ledger.Ledger
	saved  bool // it is in the folder
}

// OpenFolder makes the folder, locks it, and refuses it if files of others are in the way. With
// stays, root keeps the result, and perm limits the permissions of its files. Otherwise root is a
// work folder, whose files only this conversion needs.
func OpenFolder(ctx context.Context, root string, stays bool, w *Owner,
	perm fs.FileMode) (f *Folder, err error) {
	f = &Folder{Stays: stays, judge: w.judge(names.StateDir, w.Force)}
	kind := disk.Output
	if !stays {
		kind, perm, f.within = disk.Work, 0o600, path.Join(names.StateDir, filesDir)
		f.judge.work = true
	}
	if f.disk, err = disk.OpenFolder(kind, root, perm); err != nil {
		return nil, err
	}
	f.disk.InTheWay = func(name string) error {
		return &ConflictError{Where: f.Name(), Overwritten: []string{name}}
	}
	if err = f.inspect(ctx); err != nil {
		return nil, errors.Join(err, f.disk.Leave())
	}
	return f, nil
}

// inspect makes sure that the folder is this conversion's. With its journal, all that lies where a
// work folder has its files is: those that the journal does not list are not complete.
func (f *Folder) inspect(ctx context.Context) error {
	s, err := f.snapshot()
	if err != nil {
		return err
	}
	if f.Inspection, err = f.judge.inspect(ctx, s, nil); f.Inspection == nil {
		return err
	}
	for name, version := range f.versions {
		f.disk.Known[f.at(name)] = version
	}
	_, refused := errors.AsType[*ConflictError](err)
	if _, ours := f.Ours[f.judge.journal]; refused && ours && !f.Stays {
		return nil
	}
	return err
}

// snapshot has the files of the result, the journals and the manifest, and other files that a loader
// would read with them. In a work folder, it has the kept spools instead.
func (f *Folder) snapshot() (snapshot, error) {
	s := snapshot{f.Name(), map[string]string{}, nil, f} // what is there is hashed
	files, err := f.candidates()
	for _, name := range files {
		version, versionErr := f.version(name)
		if version != "" {
			s.versions[name] = version
		}
		err = cmp.Or(err, versionErr)
	}
	return s, err
}

// candidates are the names of the files that a snapshot looks for.
func (f *Folder) candidates() ([]string, error) {
	files := slices.AppendSeq([]string{f.judge.journal}, maps.Keys(f.judge.written))
	if !f.Stays {
		state, err := fs.ReadDir(f.disk.State.FS(), ".")
		for _, e := range state {
			if names.IsKeptSpool(e.Name()) {
				files = append(files, path.Join(names.StateDir, e.Name()))
			}
		}
		return files, err
	}
	for dir := range f.judge.loaded {
		entries, _ := fs.ReadDir(f.disk.Root.FS(), dir) // a folder that is not there has none
		for _, e := range entries {
			if reader.IsSafetensors(e.Name()) {
				files = append(files, path.Join(dir, e.Name()))
			}
		}
	}
	return files, nil
}

// version returns the size and time of a file.
func (f *Folder) version(name string) (string, error) {
	info, err := f.disk.Lstat(f.at(name))
	switch {
	case err == nil:
		return disk.Version(info), nil
	case !errors.Is(err, fs.ErrNotExist) && f.judge.writes(name):
		return "", f.disk.Unusable(err)
	}
	return "", nil
}

// inState reports whether a name is in the folder of the state.
func inState(name string) bool { return strings.HasPrefix(name, names.StateDir+"/") }

// read returns a manifest or a journal. For a link it returns nil.
func (f *Folder) read(_ context.Context, name string) ([]byte, error) {
	return f.disk.Read(f.at(name), maxJournalBytes)
}

func (f *Folder) file(ctx context.Context, name, like string) (names.File, error) {
	st, err := f.disk.Lstat(f.at(name))
	if err != nil {
		return names.File{}, err
	}
	sum := f.disk.Hash(ctx, f.at(name), st.Size(), hub.NewHash(like, st.Size()))
	return names.File{Path: name, Size: st.Size(), SHA256: sum}, context.Cause(ctx)
}

// Name is where the folder is.
func (f *Folder) Name() string { return f.disk.Root.Name() }

// State is the folder in it for all that is not the result.
func (f *Folder) State() *os.Root { return f.disk.State }

// at is where in the folder a file of the result lies, or one of the state.
func (f *Folder) at(name string) string {
	if inState(name) {
		return name
	}
	return path.Join(f.within, name)
}

// Ledger reads what earlier runs have done in the folder: from their journal, else from the
// manifest of a finished conversion. Outputs that are gone or differ from what it says are not in
// it, and of no use in a work folder.
func (f *Folder) Ledger() (l *ledger.Ledger, err error) {
	l = ledger.New(f.judge.Digest, f.Stays)
	l.Digests = f.judge.Digests
	c, ok := f.claims[f.judge.journal]
	if !ok {
		c = f.claims[names.Manifest]
	}
	l.Read(c)
	f.ledger = l
	l.Claim(f.judge.identity, f.judge.Commit, f.former())
	// it was hashed to know whose it is
	l.Keep(func(o ledger.Output) bool {
		return !o.Here || f.Ours[o.Path] == o.File() || f.Ours[o.From] == o.There()
	})
	for name := range f.versions {
		if o, _ := l.Output(name); !f.Stays && !inState(name) && !o.Here {
			err = errors.Join(err, f.Remove(name))
		}
	}
	return l, err
}

// Save writes the journal of a ledger, which every later change is appended to.
func (f *Folder) Save(l *ledger.Ledger) error {
	f.saved = true
	return l.Save(f.disk.State, journalName(f.judge.Part))
}

// Begin is called after the first journal is saved. Unless the folder holds the finished result of
// these weights, Begin removes config and manifest: weights are overwritten one by one, and the
// folder must not look finished meanwhile. Then it gives outputs of former names their present ones.
func (f *Folder) Begin() error {
	if f.Manifest != nil && !f.Made {
		if err := errors.Join(f.Remove(f.judge.config), f.Remove(names.Manifest)); err != nil {
			return err
		}
	}
	for _, o := range f.ledger.Outputs() {
		if !o.Here || o.From == "" {
			continue
		}
		if f.Ours[o.Path] != o.File() { // else the last run was stopped here
			if err := f.disk.Rename(f.at(o.From), f.at(o.Path)); err != nil {
				return err
			}
		}
		if err := f.ledger.Renamed(o.Path); err != nil {
			return err
		}
	}
	return nil
}

// Create starts a file of the result, of a known size.
func (f *Folder) Create(name string, size int64) (*disk.File, error) {
	return f.disk.Create(f.at(name), size)
}

// Announce puts a side file into the journal, before the file gets its name.
func (f *Folder) Announce(file names.File) error {
	return f.ledger.Name(file)
}

// Open opens a file of the result that this run has made or looked at.
func (f *Folder) Open(name string) (*os.File, error) { return f.disk.Open(f.at(name)) }

// Remove removes a file of the result, if it's there and no one has changed it meanwhile.
func (f *Folder) Remove(name string) error { return f.disk.Remove(f.at(name)) }

// Finish makes the folder complete: it checks that the folder is still this conversion's and holds
// every output, removes what former conversions have left, and writes the side files, config.json
// last. Copied files are there already. Finish may be repeated.
func (f *Folder) Finish(ctx context.Context, r *Result) error {
	if err := f.complete(ctx, r); err != nil {
		return err
	}
	for name := range f.Ours {
		if !f.judge.writes(name) && !inState(name) {
			if err := f.Remove(name); err != nil {
				return err
			}
		}
	}
	for _, s := range r.Files {
		if s.Data == nil || s.Kind == metadata.KindCard && f.CardStays {
			continue
		}
		if err := f.write(s); err != nil {
			return fmt.Errorf("write %s: %w", s.Path, err)
		}
	}
	return nil
}

func (f *Folder) write(s SideFile) error {
	if err := f.Announce(s.File()); err != nil {
		return err
	}
	file, err := f.Create(s.Path, s.Size)
	if err != nil {
		return err
	}
	return file.WriteAll(s.Data)
}

// complete makes sure that no one else has changed files of the folder since the run began. A file
// that former runs have made is ours, too, but no part of this result.
func (f *Folder) complete(ctx context.Context, r *Result) error {
	s, err := f.snapshot()
	if err != nil {
		return err
	}
	last := *f.Inspection
	last.versions = f.disk.Known // what the run has written since
	in, err := f.judge.inspect(ctx, s, &last)
	if err != nil {
		return err
	}
	f.Inspection = in
	for _, made := range r.inPlace() {
		version := s.versions[made.Path]
		isIt := version == f.disk.Known[made.Path] || in.Ours[made.Path] == made
		if version == "" || !isIt {
			return fmt.Errorf("%s was removed or changed while the conversion ran: "+
				"run the same command again", filepath.Join(f.Name(), made.Path))
		}
	}
	return nil
}

// Close releases the lock. With done, it removes what this run has made but the result, by name,
// then the lock: once the lock is free, the folder is the next run's. It removes an empty work
// folder too. Without done, it leaves what another run can go on with.
func (f *Folder) Close(done bool) error {
	var err error
	if !done && f.saved {
		return f.disk.Release()
	}
	if done && !f.Stays {
		err = f.removeMade()
	}
	if done {
		err = errors.Join(err, f.disk.Remove(f.judge.journal))
	}
	return errors.Join(err, f.disk.Leave())
}

// removeMade removes the files that were to be uploaded, and the folders that they were in.
func (f *Folder) removeMade() (err error) {
	for _, name := range slices.Collect(maps.Keys(f.disk.Known)) {
		if !strings.HasPrefix(name, f.within+"/") {
			continue // the journal, and spools
		}
		err = errors.Join(err, f.disk.Remove(name))
		for dir := path.Dir(name); dir != names.StateDir; dir = path.Dir(dir) {
			_ = f.disk.Remove(dir) // not if something else is in it
		}
	}
	return err
}
