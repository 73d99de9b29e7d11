package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/df11-convert/df11-convert/internal/inspect"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// ledgerVersion changes when an older ledger can't be read any more; it is then ignored and work starts afresh.
const ledgerVersion = 1

// Output is what the ledger and the manifest keep of one finished output file.
type Output struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Units tells how each unit of the file ended, in the plan's order.
	Units []UnitResult `json:"units,omitempty"`
	// Prefixes binds the output to the source bytes that it was made from.
	Prefixes []Prefix `json:"prefixes,omitempty"`
	// Uploaded, in a local journal: the target's store has the bytes, though no commit names them yet, and the file here
	// is gone.
	Uploaded bool `json:"uploaded,omitempty"`
}

// UnitResult is how the encoding of one unit ended.
type UnitResult struct {
	Path   string `json:"path"`
	Status string `json:"status"`           // "df11" or "bf16"
	Reason string `json:"reason,omitempty"` // why it stays in BF16
	// Bits is the number of bits of the coded exponents, Weights the number of weights.
	Bits    int64 `json:"bits,omitempty"`
	Weights int64 `json:"weights"`
	// Exponents counts the weights by exponent, for the model card's picture.
	Exponents *inspect.Histogram `json:"exponents,omitempty"`
	// TieBroken: the 32-bit limiter met equal counts, so other machines may get other bytes (docs/format.md §5.1).
	TieBroken bool `json:"tie_broken,omitempty"`
	GPU       bool `json:"gpu,omitempty"` // the GPU decoded it as well
}

// Prefix is the sha256 of the first End bytes of a source file, as the run saw them that made an output.
type Prefix struct {
	File   string `json:"file"`
	End    int64  `json:"end"`
	SHA256 string `json:"sha256"`
}

// Checkpoint is how far one source file was read: State is the marshalled sha256 after Offset bytes. The second pair
// counts on the spools that are kept beside a local journal.
type Checkpoint struct {
	File       string `json:"file"`
	Offset     int64  `json:"offset,omitempty"`
	State      []byte `json:"state,omitempty"`
	KeptOffset int64  `json:"kept_offset,omitempty"`
	KeptState  []byte `json:"kept_state,omitempty"`
	Integrity  string `json:"integrity,omitempty"` // set once it is final
	SHA256     string `json:"sha256,omitempty"`    // of the whole file, once it is known
}

// A ledger is what one part of a conversion has finished. Its methods may be called from several goroutines.
type ledger struct {
	mu      sync.Mutex
	digest  string
	part    string
	source  string   // see ledgerFile
	claims  []string // see ledgerFile
	outputs map[string]Output
	files   map[string]Checkpoint
	gpu     *metadata.Verification // of the finished conversion that the ledger tells of; nil if no GPU has decoded it
}

// ledgerFile is the stored form.
type ledgerFile struct {
	Version int          `json:"version"`
	Plan    string       `json:"plan"`
	Part    string       `json:"part"`
	Source  string       `json:"source,omitempty"` // Hub repo that the weights come from
	Claims  []string     `json:"claims,omitempty"` // weight files of the target that are ours: the plan's, and leftovers of former plans
	Outputs []Output     `json:"outputs"`
	Files   []Checkpoint `json:"files"`
}

func newLedger(digest, part string) *ledger {
	return &ledger{digest: digest, part: part, outputs: map[string]Output{}, files: map[string]Checkpoint{}}
}

// readLedger parses a stored ledger. One of another plan, part or version gives ok = false: its work can't be used.
func readLedger(b []byte, digest, part string) (l *ledger, ok bool, err error) {
	var f ledgerFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, false, fmt.Errorf("read journal: %w", err)
	}
	if f.Version != ledgerVersion || f.Plan != digest || f.Part != part {
		return nil, false, nil
	}
	l = newLedger(digest, part)
	for _, o := range f.Outputs {
		l.outputs[o.Path] = o
	}
	for _, c := range f.Files {
		l.files[c.File] = c
	}
	return l, true, nil
}

// usableLedger reads a stored ledger, or gives an empty one where its work can't be used: it is of another plan, or torn.
func usableLedger(b []byte, digest, part string) *ledger {
	l, ok, err := readLedger(b, digest, part)
	if err != nil || !ok {
		return newLedger(digest, part)
	}
	return l
}

// marshal gives the stored form: sorted, without times, the same for the same work.
func (l *ledger) marshal() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := ledgerFile{
		Version: ledgerVersion, Plan: l.digest, Part: l.part, Source: l.source, Claims: l.claims,
		Outputs: slices.SortedFunc(maps.Values(l.outputs), func(a, b Output) int { return cmp.Compare(a.Path, b.Path) }),
		Files:   slices.SortedFunc(maps.Values(l.files), func(a, b Checkpoint) int { return cmp.Compare(a.File, b.File) }),
	}
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		panic("pipeline: internal error: journal does not marshal: " + err.Error())
	}
	return append(b, '\n')
}

// claim says in every later journal whose the weight files of the target are.
func (l *ledger) claim(source string, claims []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source, l.claims = source, claims
}

func (l *ledger) add(o Output) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outputs[o.Path] = o
}

func (l *ledger) output(path string) (Output, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.outputs[path]
	return o, ok
}

// made tells whether the ledger has a task's output.
func (l *ledger) made(t *task) bool {
	_, ok := l.output(t.path)
	return ok
}

func (l *ledger) file(path string) Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files[path]
}

func (l *ledger) setFile(c Checkpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[c.File] = c
}

// adopt adds what the target's journal lists, perhaps of another machine. The hash in a checkpoint covers what was made by
// the runs that led up to it and nothing else: where each side has made something of a file that the other has not, the
// file is read from its beginning and compared with all of it. spools tells whether there are any here.
func (l *ledger) adopt(p *ledger, spools bool) {
	theirs, ours := p.lacking(l), l.lacking(p)
	for _, o := range p.all() {
		l.add(o)
	}
	if l.gpu == nil {
		l.gpu = p.gpu
	}
	for _, c := range p.allFiles() {
		final := c.Integrity != ""
		switch {
		case (ours[c.File] || spools && !final) && theirs[c.File]:
			l.setFile(Checkpoint{File: c.File})
		case ours[c.File] || spools && !final:
		case final || theirs[c.File] || c.Offset > l.file(c.File).Offset:
			c.KeptOffset, c.KeptState = 0, nil // there are no spools
			l.setFile(c)
		}
	}
}

// lacking names the source files of outputs that another ledger does not have.
func (l *ledger) lacking(other *ledger) map[string]bool {
	files := map[string]bool{}
	for _, o := range l.all() {
		if x, ok := other.output(o.Path); ok && x.SHA256 == o.SHA256 {
			continue
		}
		for _, p := range o.Prefixes {
			files[p.File] = true
		}
	}
	return files
}

// all lists the outputs by path.
func (l *ledger) all() []Output {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.outputs), func(a, b Output) int { return cmp.Compare(a.Path, b.Path) })
}

// allFiles lists the checkpoints by file.
func (l *ledger) allFiles() []Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.files), func(a, b Checkpoint) int { return cmp.Compare(a.File, b.File) })
}

func (l *ledger) drop(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.outputs, path)
}

// keep drops every output for which ok answers false.
func (l *ledger) keep(ok func(Output) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, o := range l.outputs {
		if !ok(o) {
			delete(l.outputs, path)
		}
	}
}

// distrust forgets a source file whose sha256 was wrong, and every output made from it.
func (l *ledger) distrust(file string) {
	l.keep(func(o Output) bool {
		return !slices.ContainsFunc(o.Prefixes, func(p Prefix) bool { return p.File == file })
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.files, file)
}
