// Package ledger knows what of a conversion is done: finished outputs, tensors that wait whole in
// kept spools, and source files that this run has found to be right. It is the only owner of
// "done"; it moves no bytes and decides no order.
//
// Outputs and tensors are stored as a journal: one JSON value a line, of which later lines replace
// earlier ones. The journal of a folder is appended to, so that its cost for an output does not
// grow with the number of outputs. The journal of a repo travels in the commit that brings the
// outputs, and lists only what is committed. Whoever can write to a target can write its journal,
// so no journal says that anything was verified.
package ledger

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
)

// Output is what ledger and manifest keep of one finished output file.
type Output struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Units says how each unit of the file ended, in the plan's order. The plan knows its tensors.
	Units []metadata.Unit `json:"units,omitempty"`
	Made  bool            `json:"-"` // by this run
	// Verified is what this run has verified about the output by comparing it with its source.
	Verified []metadata.Verification `json:"-"`
	Place
}

// File is what the file is known by.
func (o Output) File() names.File {
	return names.File{Path: o.Path, Size: o.Size, SHA256: o.SHA256}
}

// Place says where a finished output is. It need not be made again if
//
//	the result stays in the folder:   it is Here
//	the result is only published:     it is Here, Uploaded or Committed
type Place struct {
	Here      bool `json:"-"` // the folder of the run has the file
	Uploaded  bool `json:"-"` // the target's store has the bytes, and the file here may be gone
	Committed bool `json:"-"` // a commit of the target names it
}

// Tensor is a tensor that a kept spool holds whole, at the spool offset At. CRC is the CRC-32C of
// its bytes there.
type Tensor struct {
	Output string `json:"output"`
	At     int64  `json:"at"`
	CRC    uint32 `json:"crc"`
}

// File says that this run has found the sha256 of a source file to be SHA256, and that every output
// and every kept tensor in the ledger holds the bytes that were hashed. It stays true only as long
// as nothing of the file is fetched again.
type File struct {
	Path      string
	Integrity metadata.Integrity
	SHA256    string
}

// A Ledger is what a run and those before it have done. Its methods may be called from several
// goroutines.
type Ledger struct {
	digest string
	stays  bool // outputs have to stay in the run's folder

	mu     sync.Mutex
	source string // Hub repo that the weights come from
	// sha256 of files that former conversions have left in the folder, by path
	former map[string]string
	// files that are this run's but no outputs: those beside them, and committed ones that are made
	// again
	named   []Named
	outputs map[string]Output
	tensors map[string][]Tensor // by output
	files   map[string]File
	file    *os.File // the journal, open for more lines; without it nothing is stored
}

// New makes an empty ledger for a plan. With stays, an output counts as done only if the run's
// folder has it.
func New(digest string, stays bool) *Ledger {
	return &Ledger{
		digest: digest, stays: stays,
		outputs: map[string]Output{}, tensors: map[string][]Tensor{}, files: map[string]File{},
	}
}

// Claim says in every later journal where the weights come from, and which files former conversions
// have left in the folder: their sha256, by path.
func (l *Ledger) Claim(source string, former map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source, l.former = source, former
}

// Name records a file of the folder beside the outputs, before it gets its name: wherever the run
// is killed, the next one knows by its sha256 that the file is ours.
func (l *Ledger) Name(n Named) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.named = append(l.named, n)
	return l.append(record{Named: &n}.line(), true)
}

// Add records a finished output, on disk before the output gets its name: a file that no journal
// lists is taken for somebody else's. Its spool is not needed any more.
func (l *Ledger) Add(o Output) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tensors, o.Path)
	l.outputs[o.Path] = o
	return l.append(record{Output: &o}.line(), true)
}

// Uploaded records that the target's store has an output, whose file here goes.
func (l *Ledger) Uploaded(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.outputs[path]
	o.Here, o.Uploaded = false, true
	l.outputs[path] = o
	return l.append(record{Uploaded: path}.line(), false)
}

// Committed records that a commit of the target names the outputs.
func (l *Ledger) Committed(outputs []Output) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range outputs {
		now := l.outputs[o.Path]
		now.Committed = true
		l.outputs[o.Path] = now
	}
}

// Output gives a finished output, wherever it is.
func (l *Ledger) Output(path string) (Output, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.outputs[path]
	return o, ok
}

// Done reports whether an output need not be made any more.
func (l *Ledger) Done(path string) bool {
	o, _ := l.Output(path)
	return o.done(l.stays)
}

// done reports whether an output need not be made any more, if it has to stay or not.
func (p Place) done(stays bool) bool { return p.Here || !stays && (p.Uploaded || p.Committed) }

// Outputs lists the outputs that are done, by path.
func (l *Ledger) Outputs() []Output {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(l.all(), func(o Output) bool { return !o.done(l.stays) })
}

// all lists every output by path. The lock is held.
func (l *Ledger) all() []Output {
	return slices.SortedFunc(maps.Values(l.outputs),
		func(a, b Output) int { return cmp.Compare(a.Path, b.Path) })
}

// AddTensors records tensors that are whole in kept spools.
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

// Tensors lists what the kept spool of an output holds.
func (l *Ledger) Tensors(output string) []Tensor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tensors[output])
}

// ForgetTensors forgets what the kept spool of an output holds. The journal follows with the next
// Save.
func (l *Ledger) ForgetTensors(output string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tensors, output)
}

// Keep forgets the outputs that are not valid. The journal follows with the next Save.
func (l *Ledger) Keep(valid func(Output) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.all() {
		if valid(o) {
			continue
		}
		if delete(l.outputs, o.Path); o.Committed {
			l.named = append(l.named, Named{o.Path, o.SHA256})
		}
	}
}

// AddFile records that the hash of a source file was right.
func (l *Ledger) AddFile(f File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[f.Path] = f
}

// File tells how a source file was found to be right; ok is false if it was not.
func (l *Ledger) File(path string) (f File, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok = l.files[path]
	return f, ok
}

// ForgetFile takes back what AddFile has recorded.
func (l *Ledger) ForgetFile(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.files, path)
}

// Adopt takes over the outputs that the target lists, perhaps of another machine: all of them are
// committed.
func (l *Ledger) Adopt(published []Output) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range published {
		o.Place = Place{Committed: true}
		if mine, ok := l.outputs[o.Path]; ok && mine.File() == o.File() {
			mine.Committed = true
			o = mine
		} else if ok && l.stays {
			continue
		}
		l.outputs[o.Path] = o
		delete(l.tensors, o.Path)
	}
}
