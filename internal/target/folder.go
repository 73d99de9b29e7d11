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
	"strings"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/folder"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/smallfile"
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
	ledger      *ledger.Ledger
	*inspection // before the run; of a folder that does not keep its outputs, nothing
}

// OpenFolder makes the folder, locks it, and refuses a folder with other weights. With stays, root keeps the result; else it is a work
// folder. part names this run's journal; perm is the most that anybody may do with the files.
func OpenFolder(ctx context.Context, root string, stays bool, w Owner, part string, p *plan.Plan, perm fs.FileMode) (*Folder, error) {
	f := &Folder{Stays: stays, owner: w, part: part, inspection: &inspection{}}
	kind := folder.Output
	if !stays {
		kind = folder.Work
		f.within = path.Join(stateDir, filesDir)
		perm = 0o600 // nobody else needs what is on its way
		for _, o := range p.OutputFiles {
			f.made = append(f.made, o.Path)
		}
		for _, c := range slices.Concat(p.Copied, p.Components) {
			f.made = append(f.made, c.Path)
		}
	}
	var err error
	if f.Folder, err = folder.Open(kind, root, perm); err != nil {
		return nil, err
	}
	f.InTheWay = func(name string) error { return &ConflictError{Where: f.Root.Name(), Overwritten: []string{name}} }
	f.owner.journal = path.Join(stateDir, journalName(part))
	if stays {
		err = f.inspect(ctx)
	} else if err = f.refuseOtherWork(); err == nil {
		err = f.removeCopies(p)
	}
	if err != nil {
		return nil, errors.Join(err, f.Leave())
	}
	return f, nil
}

// refuseOtherWork refuses a work folder with work that this run would not go on with, and would remove: that of another source, or of a
// run that keeps its outputs there.
func (f *Folder) refuseOtherWork() error {
	journal, err := smallfile.Read(f.journal(), maxJournalBytes)
	var c claim
	c.plan, c.source, _, _ = ledger.Claimed(journal)
	ours := c.plan == f.owner.Digest || f.owner.sameSource(c)
	if f.owner.Force || err == nil && ours && !ledger.Keeps(journal) {
		return nil
	}
	e := &ConflictError{Where: f.Root.Name()}
	if !errors.Is(err, fs.ErrNotExist) {
		e.Overwritten = append(e.Overwritten, f.owner.journal)
	}
	spools, err := spool.Names(f.State)
	for _, name := range spools {
		e.Overwritten = append(e.Overwritten, path.Join(stateDir, name))
	}
	for _, name := range f.made {
		if _, missing := f.Lstat(f.name(name)); missing == nil {
			e.Overwritten = append(e.Overwritten, f.name(name))
		}
	}
	if err != nil || len(e.Overwritten) == 0 {
		return err
	}
	return e
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

// snapshot has every file that the rule of Owner is about: those of the result, those that manifest and journal list, and what a loader
// reads beside them. The version of a file is its size and time.
func (f *Folder) snapshot(ctx context.Context) (snapshot, error) {
	s := snapshot{where: f.Root.Name(), versions: map[string]string{}, read: f.read, sum: f.sum, equals: f.equals}
	names := slices.AppendSeq([]string{f.owner.journal}, maps.Keys(f.owner.written))
	for _, name := range []string{metadata.ManifestName, f.owner.journal} {
		if _, err := f.Lstat(name); err != nil {
			continue // it is looked for again below
		}
		c, err := (&inspection{snapshot: s}).readClaim(ctx, name)
		if err != nil {
			return s, err
		}
		names = slices.AppendSeq(slices.AppendSeq(names, maps.Keys(c.outputs)), maps.Keys(c.former))
	}
	for dir := range f.owner.loaded {
		entries, _ := fs.ReadDir(f.Root.FS(), dir) // a folder that is not there has none
		for _, e := range entries {
			if plan.IsSafetensors(e.Name()) {
				names = append(names, path.Join(dir, e.Name()))
			}
		}
	}
	for _, name := range names {
		st, err := f.Lstat(name)
		switch {
		case err == nil:
			s.versions[name] = folder.Version(st)
		case !errors.Is(err, fs.ErrNotExist) && f.owner.writes(name):
			return s, f.Unusable(err)
		}
	}
	return s, nil
}

// inState reports whether a name is in the folder of the state.
func inState(name string) bool { return strings.HasPrefix(name, stateDir+"/") }

// read gives a manifest or a journal; nothing of a link.
func (f *Folder) read(_ context.Context, name string) ([]byte, error) {
	if st, err := f.Lstat(name); err != nil || !st.Mode().IsRegular() {
		return nil, err
	}
	return smallfile.Read(filepath.Join(f.Root.Name(), filepath.FromSlash(name)), maxJournalBytes)
}

func (f *Folder) sum(ctx context.Context, name string) (string, error) {
	st, err := f.Lstat(name)
	if err != nil {
		return "", err
	}
	return f.Sum(ctx, name, st.Size()), context.Cause(ctx)
}

// equals compares a file with what pins its content at the source, or with the file of a local source.
func (f *Folder) equals(ctx context.Context, name, pin string) bool {
	if pin == "" && f.owner.Content != nil {
		pin = f.owner.Content(ctx, name)
	}
	st, err := f.Lstat(name)
	if pin == "" || err != nil {
		return false
	}
	return f.Hash(ctx, name, st.Size(), model.HashLike(pin, st.Size())) == pin
}

// inspect makes sure that the folder is this conversion's.
func (f *Folder) inspect(ctx context.Context) error {
	s, err := f.snapshot(ctx)
	if err == nil {
		f.inspection, err = f.owner.judge(ctx, s, nil, nil)
		f.Known = maps.Clone(s.versions)
	}
	return err
}

// Path is where a file of the result lies.
func (f *Folder) Path(name string) string {
	return filepath.Join(f.Root.Name(), filepath.FromSlash(f.name(name)))
}

// name is the name of a file of the result in the folder.
func (f *Folder) name(name string) string { return path.Join(f.within, name) }

// IsCurrent reports whether the folder held the finished result of the plan when the run began, and nothing of ours beside it.
func (f *Folder) IsCurrent() bool { return f.owner.isCurrent(f.inspection) }

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
	f.ledger = l
	l.Claim(f.owner.Source, f.former())
	l.Keep(func(o ledger.Output) bool {
		if f.Stays { // it was hashed to know whose it is
			return f.Ours[o.Path] == o.SHA256
		}
		return !o.Here || ctx.Err() == nil && f.Sum(ctx, f.name(o.Path), o.Size) == o.SHA256
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return l, nil
}

func (f *Folder) journal() string { return filepath.Join(f.State.Name(), journalName(f.part)) }

// Save writes the journal of a ledger, which every later change is appended to.
func (f *Folder) Save(l *ledger.Ledger) error { return l.Save(f.State, journalName(f.part)) }

// Begin is called once the first journal tells what is ours. Unless the folder holds the finished result of the very source, or a part
// of it, Begin removes config and manifest: weights are overwritten one by one, and the folder must not look finished meanwhile.
func (f *Folder) Begin(unchanged bool) error {
	if f.Manifest == nil || f.Manifest.Plan.Digest == f.owner.Digest && unchanged {
		return nil
	}
	for _, o := range f.Manifest.Outputs {
		if _, ours := f.Ours[o.Path]; ours && o.Kind == metadata.KindConfig {
			if err := f.Remove(o.Path); err != nil {
				return err
			}
		}
	}
	return f.Remove(metadata.ManifestName)
}

// Create starts a file of the result, of a known size.
func (f *Folder) Create(name string, size int64) (*atomicfile.File, error) {
	return f.Folder.Create(f.name(name), size)
}

// Announce says which sha256 a file beside the outputs will have, before it gets its name in a folder that keeps it.
func (f *Folder) Announce(name, sum string) error {
	if !f.Stays {
		return nil
	}
	return f.ledger.Name(ledger.Named{Path: name, SHA256: sum})
}

// Remove removes a file of the result, if it is there and nobody has changed it meanwhile.
func (f *Folder) Remove(name string) error { return f.Folder.Remove(f.name(name)) }

// Finish makes the folder complete: it checks that the folder is still this conversion's and holds every output, removes what former
// conversions have left, and writes the side files, config.json last. Copied files are there already. Finish may be repeated.
func (f *Folder) Finish(ctx context.Context, r *Result) error {
	if err := f.complete(ctx, r); err != nil {
		return err
	}
	for name := range f.Ours {
		if !f.owner.writes(name) && !inState(name) {
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
	if err := f.Announce(s.Path, s.SHA256); err != nil {
		return err
	}
	file, err := f.Create(s.Path, s.Size)
	if err != nil {
		return err
	}
	return file.WriteAll(s.Data)
}

// complete makes sure that nobody has changed the files of the folder since the run began, or has named them.
func (f *Folder) complete(ctx context.Context, r *Result) error {
	s, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	made := map[string]string{}
	for _, o := range r.Outputs {
		made[o.Path] = o.SHA256
		if v := s.versions[o.Path]; v == "" || v != f.Known[o.Path] {
			return fmt.Errorf("%s was removed or changed while the conversion ran: run it again, and it is made again", f.Path(o.Path))
		}
	}
	maps.DeleteFunc(s.versions, func(name, version string) bool { return version == f.Known[name] })
	in, err := f.owner.judge(ctx, s, f.inspection, made)
	if err == nil {
		f.CardStays = f.CardStays || in.CardStays
	}
	return err
}

// Close gives the lock back. With done, it removes what this run has made but the result, by name, then the lock: once the lock is
// free, the folder is the next run's. It removes an empty work folder too.
func (f *Folder) Close(done bool) error {
	if !done {
		return f.Release()
	}
	var err error
	if !f.Stays {
		err = f.removeMade()
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
