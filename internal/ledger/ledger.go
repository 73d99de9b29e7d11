// Package ledger knows which parts of a conversion are done: finished outputs, complete tensors in
// kept spools, and source files that this run has found to be right. No other package decides what
// is done. It moves no bytes and decides no order.
//
// Outputs and tensors are stored as a journal, with one JSON value per line. Later lines replace
// earlier ones. A folder's journal is appended to, so an output costs the same no matter how many
// there are. A repo's journal is part of the commit that brings the outputs, and lists only what is
// committed. Anyone who can write to a target can write its journal, so no journal can claim that
// something was verified.
package ledger

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Output is what the ledger and the manifest record about a finished output file.
type Output struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Digest covers everything that decides the bytes of the file (plan.OutputDigests).
	Digest string `json:"digest,omitempty"`
	// From is where an earlier program has put the file; "" if it has its name.
	From string `json:"from,omitempty"`
	// Units says how each unit of the file ended, in the plan's order. The plan knows their
	// tensors.
	Units []metadata.Unit `json:"units,omitempty"`
	Made  bool            `json:"-"` // by this run
	// Proved means that an earlier run made the output, and this run has rebuilt its source files
	// from it and found out how its units ended.
	Proved bool `json:"-"`
	// Verified is what this run has verified about the output by comparing it with its source.
	Verified []metadata.Verification `json:"-"`
	Earlier  *metadata.Run           `json:"-"` // the run that verified it, if this run takes it over
	Place
}

// Unproved reports whether an earlier run made the output and this run still has to verify it.
func (o Output) Unproved() bool { return !o.Made && o.Earlier == nil && !o.Proved }

// File returns what identifies the file.
func (o Output) File() names.File {
	return names.File{Path: o.Path, Size: o.Size, SHA256: o.SHA256}
}

// Stored returns what identifies the file where it is stored now.
func (o Output) Stored() names.File {
	f := o.File()
	f.Path = cmp.Or(o.From, f.Path)
	return f
}

// Place says where a finished output is. It needn't be made again if
//
//	the result stays in the folder:   it is Here
//	the result is only published:     it is Here, Uploaded, or Committed
type Place struct {
	Here      bool `json:"-"` // the run's folder has the file
	Uploaded  bool `json:"-"` // the target's store has the bytes, and the file here may be gone
	Committed bool `json:"-"` // a commit of the target has it
}

// Tensor is a complete tensor in a kept spool, at the spool offset At. CRC is the CRC-32C of its
// bytes there.
type Tensor struct {
	Output string `json:"output"`
	At     int64  `json:"at"`
	CRC    uint32 `json:"crc"`
}

// File reports that this run found SHA256 to be the SHA-256 of a source file, and that every output
// and kept tensor in the ledger comes from the bytes that were hashed. If any part of the file is
// fetched again, call ForgetFile.
type File struct {
	Path      string
	Integrity metadata.Integrity
	SHA256    string
}

// A Ledger is what a run and earlier runs have done. Goroutines may share it.
type Ledger struct {
	// Digests are the digests of the plan's outputs, by path. Set them before use.
	Digests map[string]string
	// Ref is the branch that the outputs of a work folder go to, "namespace/name@branch", or "".
	Ref string

	digest string
	stays  bool // outputs must stay in the run's folder

	mu       sync.Mutex
	identity plan.Identity
	commit   string       // of the source
	former   []names.File // files that former conversions left in the folder
	// files of this run that aren't outputs: those next to them, and committed outputs to make
	// again
	named   []names.File
	outputs map[string]Output
	tensors map[string][]Tensor // by output
	files   map[string]File
	file    *os.File // the open journal; nil: nothing is stored
}

// New returns an empty ledger for a plan. With stays, an output counts as done only if it's in the
// run's folder.
func New(digest string, stays bool) *Ledger {
	return &Ledger{
		digest: digest, stays: stays,
		outputs: map[string]Output{}, tensors: map[string][]Tensor{}, files: map[string]File{},
	}
}

// Claim sets what every later journal says: which result is made, from which commit of the source
// ("" if unknown), and which files former conversions left in the folder.
func (l *Ledger) Claim(of plan.Identity, commit string, former []names.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.identity, l.commit, l.former = of, commit, former
}

// Name records a file that isn't an output before it gets its name in the folder. If the run is
// killed, the next one recognizes the file by its SHA-256.
func (l *Ledger) Name(n names.File) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.named = append(l.named, n)
	return l.append(record{Named: &n}.line(), true)
}

// Add records a finished output. The record must be on disk before the output gets its name,
// because a file that no journal lists counts as someone else's. The output's tensors stay in
// the ledger, in case that a kill comes in between: call ForgetTensors when their spool is gone.
func (l *Ledger) Add(o Output) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.Digest = l.Digests[o.Path]
	l.outputs[o.Path] = o
	return l.append(record{Output: &o}.line(), true)
}

// Uploaded records that the target's store has an output, and that its file here will be removed.
func (l *Ledger) Uploaded(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.outputs[path]
	o.Here, o.Uploaded = false, true
	l.outputs[path] = o
	return l.append(record{Uploaded: path}.line(), false)
}

// Committed records that a commit of the target has the outputs.
func (l *Ledger) Committed(outputs []Output) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range outputs {
		now := l.outputs[o.Path]
		now.Committed, now.From = true, ""
		l.outputs[o.Path] = now
	}
}

// Output returns a finished output, wherever it is.
func (l *Ledger) Output(path string) (Output, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.outputs[path]
	return o, ok
}

// Done reports whether an output needn't be made anymore.
func (l *Ledger) Done(path string) bool {
	o, _ := l.Output(path)
	return o.done(l.stays)
}

// done reports whether an output needn't be made anymore. With stays, it must be in the folder.
func (p Place) done(stays bool) bool { return p.Here || !stays && (p.Uploaded || p.Committed) }

// Outputs lists the outputs that are done, by path.
func (l *Ledger) Outputs() []Output {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(l.all(), func(o Output) bool { return !o.done(l.stays) })
}

// all lists every output by path. Call it with the lock held.
func (l *Ledger) all() []Output {
	return slices.SortedFunc(maps.Values(l.outputs),
		func(a, b Output) int { return cmp.Compare(a.Path, b.Path) })
}

// AddTensors records complete tensors in kept spools.
func (l *Ledger) AddTensors(ts []Tensor) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range ts {
		l.tensors[t.Output] = append(l.tensors[t.Output], t)
		if err := l.append(record{Tensor: &t}.line(), false); err != nil {
			return err
		}
	}
	return nil
}

// Tensors lists what the kept spool of an output holds, unless the output is done.
func (l *Ledger) Tensors(output string) []Tensor {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outputs[output].done(l.stays) {
		return nil
	}
	return slices.Clone(l.tensors[output])
}

// ForgetTensors forgets what the kept spool of an output holds. The next Save updates the journal.
func (l *Ledger) ForgetTensors(output string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tensors, output)
}

// Keep forgets the outputs for which valid returns false. The next Save updates the journal.
func (l *Ledger) Keep(valid func(Output) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.all() {
		if valid(o) {
			continue
		}
		if delete(l.outputs, o.Path); o.Committed {
			l.named = append(l.named, o.File())
		}
	}
}

// TakeOver sets the earlier run that verified each output, if this run takes the output over.
func (l *Ledger) TakeOver(verifiedBy func(Output) *metadata.Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, o := range l.outputs {
		o.Earlier = verifiedBy(o)
		l.outputs[path] = o
	}
}

// Prove records that this run has proved an output of an earlier one, and how its units ended.
func (l *Ledger) Prove(path string, units []metadata.Unit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, ok := l.outputs[path]; ok {
		o.Units, o.Proved = units, true
		l.outputs[path] = o
	}
}

// AddFile records that the hash of a source file was right.
func (l *Ledger) AddFile(f File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[f.Path] = f
}

// File returns how a source file was found to be right. ok is false if it wasn't.
func (l *Ledger) File(path string) (f File, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok = l.files[path]
	return f, ok
}

// ForgetFile removes what AddFile recorded.
func (l *Ledger) ForgetFile(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.files, path)
}

// Adopt takes over the outputs that the target lists, which another machine may have made. All of
// them are committed, but for those that the target's store has under another name.
func (l *Ledger) Adopt(published []Output) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range published {
		o.Place = Place{Committed: o.From == "", Uploaded: o.From != ""}
		if mine, ok := l.outputs[o.Path]; ok && mine.File() == o.File() {
			mine.Committed = o.Committed
			o = mine
		} else if ok && l.stays {
			continue
		}
		l.outputs[o.Path] = o
		delete(l.tensors, o.Path)
	}
}
