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

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// filesDir is the folder, inside the state folder, for the outputs of a folder that doesn't keep
// them.
const filesDir = "files"

// A Folder is where output files are made. It's the user's output folder, which keeps them, or a
// work folder, which drops each file after its upload. It never touches other files.
type Folder struct {
	Stays bool // the folder keeps its output files

	run    *Conversion
	disk   *disk.Folder
	within string // where in the folder the output files are
	at     place
	in     *Inspection
	ledger *ledger.Ledger
	saved  bool // the ledger is in the folder
}

// Unlocked reports that the folder's file system has no locks, so nothing keeps another run out.
func (f *Folder) Unlocked() bool { return f.disk.Unlocked }

// ReadOnly returns an error if the folder can't be written to. Then it holds the finished result.
func (f *Folder) ReadOnly() error { return f.disk.ReadOnly() }

// OpenFolder makes the folder, locks it, and refuses it if files of others are in the way. With
// stays, root keeps the result, and perm limits the permissions of its files. Otherwise root is a
// work folder, whose files only this conversion needs. A folder that can't be written to is refused
// unless it holds the finished result.
func OpenFolder(ctx context.Context, root string, stays bool, run *Conversion,
	perm fs.FileMode) (f *Folder, err error) {
	if f, err = lockFolder(root, stays, run.Part, perm); err != nil {
		return nil, err
	}
	f.run, f.at.force = run, run.Force
	if err = f.inspect(ctx); f.ReadOnly() != nil && (err != nil || !f.in.Current || run.Force) {
		err = f.ReadOnly()
	}
	if err != nil {
		return nil, errors.Join(err, f.disk.Close())
	}
	f.removeReadBack() // of a killed run
	f.ledger = f.earlier()
	return f, nil
}

// lockFolder makes the folder for a part and locks it. It looks at nothing that is there. A work
// folder's files are only the user's, whatever perm is.
func lockFolder(root string, stays bool, part string, perm fs.FileMode) (*Folder, error) {
	f := &Folder{Stays: stays, at: place{work: !stays, folder: stays,
		journal: path.Join(names.StateDir, journalName(part))}}
	var err error
	if stays {
		f.disk, err = disk.OpenOrRead(disk.Output, root, perm)
	} else {
		f.within = path.Join(names.StateDir, filesDir)
		f.disk, err = disk.OpenFolder(disk.Work, root, 0o600)
	}
	if err != nil {
		return nil, err
	}
	f.disk.InTheWay = func(name string) error {
		return &ConflictError{Where: f.Name(), Overwritten: []string{name}}
	}
	return f, nil
}

// inspect makes sure that the folder is this conversion's. If a work folder holds our journal, all
// its files are ours. Those the journal doesn't list are incomplete.
func (f *Folder) inspect(ctx context.Context) error {
	l, err := f.list()
	if err != nil {
		return err
	}
	if f.in, err = f.run.inspect(ctx, f.at, l, nil); f.in == nil {
		return err
	}
	for name, version := range f.in.versions {
		f.disk.Versions[f.pathOf(name)] = version
	}
	_, refused := errors.AsType[*ConflictError](err)
	if refused && f.at.work && f.in.Files[f.at.journal].Standing == Ours {
		return nil
	}
	return err
}

// Found is what the folder held before the run, or after Finish, what Finish found.
func (f *Folder) Found() *Inspection { return f.in }

// list lists the files of the result, the journals and the manifest, and other files that a loader
// would read with them. In a work folder, it lists the kept spools instead.
func (f *Folder) list() (listing, error) {
	l := listing{f.Name(), map[string]string{}, nil, f} // what is there is hashed
	files, err := f.candidates()
	for _, name := range files {
		version, versionErr := f.version(name)
		if version != "" {
			l.versions[name] = version
		}
		err = cmp.Or(err, versionErr)
	}
	return l, err
}

// candidates are the names of the files that list looks for.
func (f *Folder) candidates() ([]string, error) {
	files := slices.AppendSeq([]string{f.at.journal}, maps.Keys(f.run.files))
	if !f.Stays {
		state, err := fs.ReadDir(f.disk.State.FS(), ".")
		for _, e := range state {
			if names.IsKeptSpool(e.Name()) {
				files = append(files, path.Join(names.StateDir, e.Name()))
			}
		}
		return files, err
	}
	dirs := map[string]bool{}
	for name := range f.run.files {
		dirs[path.Dir(name)] = true
	}
	for dir := range dirs {
		entries, _ := fs.ReadDir(f.disk.Root.FS(), dir) // a folder that is not there has none
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if f.run.loads(name) || !e.IsDir() && f.isAlike(name) {
				files = append(files, name)
			}
		}
	}
	return files, nil
}

// isAlike reports whether a file's name is like that of another file of the result, unless this
// system takes both for one.
func (f *Folder) isAlike(name string) bool {
	other := f.run.alike(name)
	if other == "" {
		return false
	}
	here, err := f.version(name)
	there, _ := f.version(other)
	return err == nil && here != there
}

// version returns the size and time of a file.
func (f *Folder) version(name string) (string, error) {
	info, err := f.disk.Lstat(f.pathOf(name))
	switch {
	case err == nil:
		return disk.Version(info), nil
	case !errors.Is(err, fs.ErrNotExist) && f.run.writes(name):
		return "", f.disk.Unusable(err)
	}
	return "", nil
}

// inState reports whether a name is in the folder of the state.
func inState(name string) bool { return strings.HasPrefix(name, names.StateDir+"/") }

func (f *Folder) size(name string) int64 {
	st, err := f.disk.Lstat(f.pathOf(name))
	if err != nil {
		return 0
	}
	return st.Size()
}

// read returns a small file. For a link it returns nil.
func (f *Folder) read(_ context.Context, name string, limit int64) ([]byte, error) {
	return f.disk.Read(f.pathOf(name), limit)
}

func (f *Folder) file(ctx context.Context, name string) (names.File, error) {
	size, sum, err := f.hash(ctx, name, "")
	return names.File{Path: name, Size: size, SHA256: sum}, err
}

func (f *Folder) has(ctx context.Context, name, hash string) (bool, error) {
	_, own, err := f.hash(ctx, name, hash)
	return own == hash, err
}

// hash returns the size of a file, and its hash of the same kind as like, or its SHA-256.
func (f *Folder) hash(ctx context.Context, name, like string) (size int64, hash string, err error) {
	st, err := f.disk.Lstat(f.pathOf(name))
	if err != nil {
		return 0, "", err
	}
	hash = f.disk.Hash(ctx, f.pathOf(name), st.Size(), hub.NewHash(like, st.Size()))
	return st.Size(), hash, context.Cause(ctx)
}

func (f *Folder) isResult(name string) bool {
	file, err := f.disk.Root.Open(f.pathOf(name))
	if err != nil {
		return false
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	h, err := safetensors.ReadHeader(file, st.Size())
	return err == nil && (isRemainder(name) || reader.IsUsual(name) && reader.FamilyOf(name) != catalog.ComfyUI ||
		slices.ContainsFunc(h.Tensors, func(t safetensors.Tensor) bool {
			return strings.HasSuffix(t.Name, "."+encoder.NameEncodedExponent)
		}))
}

// Name is where the folder is.
func (f *Folder) Name() string { return f.disk.Root.Name() }

// State is the folder inside it for everything but the result.
func (f *Folder) State() *os.Root { return f.disk.State }

// pathOf returns the path in the folder of a file of the result, or of the state.
func (f *Folder) pathOf(name string) string {
	if inState(name) {
		return name
	}
	return path.Join(f.within, name)
}

// Ledger returns what is done: at first, what earlier runs finished, from their journal or else the
// manifest. It leaves out outputs that are missing or changed.
func (f *Folder) Ledger() *ledger.Ledger { return f.ledger }

// earlier returns the ledger of earlier runs.
func (f *Folder) earlier() *ledger.Ledger {
	l := ledger.New(f.run.Digest, f.Stays)
	l.Digests = f.run.Digests
	if !f.Stays {
		l.Ref = f.run.Ref
	}
	claim, ok := f.in.claims[f.at.journal]
	if !ok {
		claim = f.in.claims[names.Manifest]
	}
	l.Read(claim)
	l.Claim(f.run.identity, f.run.From.Commit, f.in.Ours())
	l.Keep(func(o ledger.Output) bool { // those that are here were hashed, to know whose they are
		return !o.Here || f.in.Holds(o.File()) || f.in.Holds(o.Stored())
	})
	return l
}

// Clear removes from a work folder the outputs that are incomplete, or of no use to this run.
func (f *Folder) Clear() (err error) {
	for name := range f.in.versions {
		if o, _ := f.ledger.Output(name); !f.Stays && !inState(name) && !o.Here {
			err = errors.Join(err, f.Remove(name))
		}
	}
	return err
}

// Save writes the ledger as the journal, which every later change is appended to.
func (f *Folder) Save() error {
	f.saved = true
	return f.ledger.Save(f.disk.State, journalName(f.run.Part))
}

// Begin is called after the first journal is saved. Unless the folder holds the finished result of
// these weights, Begin removes config and manifest: weights are overwritten one by one, and the
// folder must not look finished meanwhile.
func (f *Folder) Begin() error {
	if f.in.Manifest != nil && !f.in.ByPlan {
		if err := errors.Join(f.Remove(f.run.config), f.Remove(names.Manifest)); err != nil {
			return err
		}
	}
	return f.rename()
}

// Create starts a file of the result, of a known size.
func (f *Folder) Create(name string, size int64) (*disk.File, error) {
	return f.disk.Create(f.pathOf(name), size)
}

// Announce puts a side file into the journal, before the file gets its name.
func (f *Folder) Announce(file names.File) error {
	return f.ledger.Name(file)
}

// Open opens a file of the result that this run has made or looked at.
func (f *Folder) Open(name string) (*os.File, error) { return f.disk.Open(f.pathOf(name)) }

// Remove removes a file of the result, if it's there and no one has changed it meanwhile.
func (f *Folder) Remove(name string) error { return f.disk.Remove(f.pathOf(name)) }

// Finish makes the folder complete: it checks that the folder is still this conversion's and holds
// every output, removes what former conversions have left, and writes the side files, config.json
// last. Copied files are there already. Then it looks again whether every file is there. Finish may
// be repeated. Only a folder that stays is finished.
func (f *Folder) Finish(ctx context.Context, r *Result) error {
	if err := f.complete(ctx, r); err != nil {
		return err
	}
	for _, old := range f.in.Ours() {
		if !f.run.writes(old.Path) && !inState(old.Path) {
			if err := f.Remove(old.Path); err != nil {
				return err
			}
		}
	}
	for _, s := range r.Files {
		if s.Data == nil || s.Kind == metadata.KindCard && f.in.CardStays() {
			continue
		}
		if err := f.write(s); err != nil {
			return fmt.Errorf("write %s: %w", s.Path, err)
		}
	}
	return f.hold(r.all())
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
// that former runs made is ours too, but no part of this result.
func (f *Folder) complete(ctx context.Context, r *Result) error {
	l, err := f.list()
	if err != nil {
		return err
	}
	last := *f.in
	last.versions = f.disk.Versions // what the run has written since
	in, err := f.run.inspect(ctx, f.at, l, &last)
	if err != nil {
		return err
	}
	f.in = in
	return f.hold(r.inPlace())
}

// hold fails unless the folder has files as this run has written or found them. A card that stays
// may change.
func (f *Folder) hold(files []names.File) error {
	for _, file := range files {
		if file.Path == names.Card && f.in.CardStays() {
			continue
		}
		version, err := f.version(file.Path)
		isIt := version == f.disk.Versions[file.Path] ||
			version == f.in.versions[file.Path] && f.in.Holds(file)
		if version == "" || !isIt {
			return errors.Join(err, &LostFileError{filepath.Join(f.Name(), file.Path)})
		}
	}
	return nil
}

// Close releases the lock. If done, it deletes everything this run made except the result, and the
// lock last, because the next run may start as soon as the lock is free. It removes an empty work
// folder too. Otherwise it leaves what another run can go on with.
func (f *Folder) Close(done bool) error {
	var err error
	if !done && f.saved || f.ReadOnly() != nil {
		return f.disk.Release()
	}
	if done && !f.Stays {
		err = f.removeMade()
	}
	if done {
		for _, o := range f.ledger.Outputs() { // another machine may have made it meanwhile
			err = errors.Join(err, f.disk.Remove(path.Join(names.StateDir, names.KeptSpool(o.Path))))
		}
		err = errors.Join(err, f.disk.Remove(f.at.journal))
	}
	return errors.Join(err, f.disk.Close())
}

// Discard releases the lock after it has deleted everything that this run and earlier ones of the
// same plan made, the outputs too.
func (f *Folder) Discard() (err error) {
	for _, o := range f.ledger.Outputs() {
		if !f.Stays || !o.Here {
			continue
		}
		err = errors.Join(err, f.Remove(o.Path))
		for dir := path.Dir(o.Path); dir != "."; dir = path.Dir(dir) {
			_ = f.disk.Root.Remove(dir) // not if something else is in it
		}
	}
	return errors.Join(err, f.Close(true))
}

// removeMade removes the files that were to be uploaded, and the folders that they were in.
func (f *Folder) removeMade() (err error) {
	for _, name := range slices.Collect(maps.Keys(f.disk.Versions)) {
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
