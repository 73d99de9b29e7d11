package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/python"
)

// version is the version of the journals that this program writes and reads.
const version = 1

// lastPrerelease is the last version of the journals from before the first release, which began at
// 2.
const lastPrerelease = 3

// record is one line of a journal: the head, or one thing that is done.
type record struct {
	*head
	Output   *Output `json:"output,omitempty"`
	Uploaded string  `json:"uploaded,omitempty"` // path of an output that the target's store has
	Tensor   *Tensor `json:"tensor,omitempty"`
	// a file of the folder that has its name, or is about to get it
	Named *names.File `json:"named,omitempty"`
}

// head is the first line. It says which conversion the journal belongs to.
type head struct {
	Version int           `json:"version"`
	Plan    string        `json:"plan"`
	Result  plan.Identity `json:"result"`
	Commit  string        `json:"commit,omitempty"` // of the source; "" if unknown
	Keeps   bool          `json:"keeps,omitempty"`  // the folder must keep the outputs
	Ref     string        `json:"branch,omitempty"` // that a work folder's outputs go to
	// Former are files of the target that are ours, because earlier journals and manifests there
	// list them.
	Former []names.File `json:"former,omitempty"`
}

func (r record) line() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("ledger: internal error: record does not marshal: " + err.Error())
	}
	return append(b, '\n')
}

// Limits of a journal to read (docs/format.md §16).
const (
	maxObjects = 1 << 21
	maxValues  = 1 << 24
)

// A Claim is what a journal or a manifest says about the files of a target. The empty Claim has
// Plan "".
type Claim struct {
	head
	Newer bool // a journal of a newer version, of which nothing else is known
	// a journal of a program from before the first release, which knew no commits, layouts, and
	// digests
	Prerelease bool
	Weights    []names.File      // of the source, as a manifest lists them; nil in a journal
	Outputs    map[string]Output // finished outputs, by path
	Others     []names.File      // all other files that are ours; a path may occur several times
	tensors    map[string][]Tensor
}

func newClaim(h head) Claim {
	return Claim{head: h, Outputs: map[string]Output{}, Others: h.Former,
		tensors: map[string][]Tensor{}}
}

// ReadJournal returns what a journal claims. A kill can leave a torn last line; ReadJournal stops
// there. If a newer program wrote the journal, ReadJournal sets only Newer. The claim is empty if
// the head is torn or of another version, if the journal is larger than a conversion can make it,
// or if it names a file as no conversion does.
func ReadJournal(b []byte) Claim {
	var numbered struct {
		Version int `json:"version"`
	}
	first, lines, _ := bytes.Cut(b, []byte("\n"))
	if python.Bounded(b, maxObjects, maxValues) != nil || python.Unmarshal(first, &numbered) != nil {
		return Claim{}
	}
	if numbered.Version > version && numbered.Version <= lastPrerelease {
		return readPrerelease(first, lines)
	}
	if numbered.Version > lastPrerelease {
		return Claim{Newer: true}
	}
	var h head
	if numbered.Version != version || python.Unmarshal(first, &h) != nil {
		return Claim{}
	}
	c := newClaim(h)
	for line := range bytes.Lines(lines) {
		var r record
		if python.Unmarshal(line, &r) != nil {
			break
		}
		c.add(r)
	}
	return c.checked()
}

// checked returns the claim, or an empty one if a path in it isn't safe on every system. No
// conversion makes such a file, and "./x" would be a second name of the file x.
func (c Claim) checked() Claim {
	paths := slices.AppendSeq(slices.Collect(maps.Keys(c.Outputs)), maps.Keys(c.tensors))
	for _, o := range c.Outputs {
		paths = append(paths, o.Stored().Path)
	}
	for _, f := range c.Others {
		paths = append(paths, f.Path)
	}
	if !slices.ContainsFunc(paths, func(path string) bool { return !names.IsSafe(path) }) {
		return c
	}
	return Claim{}
}

// add adds a line of a journal. An output is in its folder until the target's store has it.
func (c *Claim) add(r record) {
	switch {
	case r.Output != nil:
		o := *r.Output
		o.Here = true
		c.Outputs[o.Path] = o
	case r.Uploaded != "":
		if o, ok := c.Outputs[r.Uploaded]; ok {
			o.Here, o.Uploaded = false, true
			c.Outputs[o.Path] = o
		}
	case r.Named != nil:
		c.Others = append(c.Others, *r.Named)
	case r.Tensor != nil:
		c.tensors[r.Tensor.Output] = append(c.tensors[r.Tensor.Output], *r.Tensor)
	}
}

// OfManifest returns what the manifest of a finished conversion claims. Check yourself whether its
// files still exist.
func OfManifest(m *metadata.Manifest) Claim {
	c := newClaim(head{Version: version, Plan: m.Plan.Digest, Result: m.Identity(),
		Commit: m.Source.Commit})
	for _, f := range m.Source.Files {
		c.Weights = append(c.Weights, names.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256})
	}
	for _, f := range m.Outputs {
		switch {
		case f.Kind.Weights():
			c.Outputs[f.Path] = Output{Path: f.Path, Size: f.Size, SHA256: f.SHA256,
				Digest: f.Digest, Place: Place{Here: true}}
		case !f.Kept:
			c.Others = append(c.Others, f.File())
		}
	}
	for _, u := range m.Units {
		o := c.Outputs[u.File]
		u.File, u.Tensors = "", nil
		o.Units = append(o.Units, u)
		c.Outputs[o.Path] = o
	}
	return c.checked()
}

// Read fills an empty ledger from a claim about a folder. The listed files are here, unless the
// claim says that they were uploaded. From a claim of another plan, Read takes only outputs that
// this plan makes from the same bytes.
func (l *Ledger) Read(c Claim) {
	for _, o := range c.Done(l.digest, l.Digests) {
		l.outputs[o.Path] = o
	}
	if c.Plan == l.digest {
		maps.Copy(l.tensors, c.tensors)
	}
}

// Done returns the outputs of a claim that a plan would make from the same bytes. digest is the
// plan's, and digests are those of its outputs, by path.
func (c Claim) Done(digest string, digests map[string]string) (done []Output) {
	for _, path := range slices.Sorted(maps.Keys(c.Outputs)) {
		o := c.Outputs[path]
		if now := digests[path]; c.Plan == digest || o.Digest != "" && o.Digest == now {
			o.Digest = now
			done = append(done, o)
		}
	}
	return done
}

// Save writes the whole journal to a file in dir, which appears complete. Later changes are
// appended to the file. It stays open until Close.
func (l *Ledger) Save(dir *os.Root, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.begin(head{Keeps: l.stays, Ref: l.Ref, Former: l.former})
	for _, o := range l.all() {
		uploaded := o.Uploaded || o.Committed && !l.stays // maybe by another machine
		if o.Here || uploaded {
			b = append(b, record{Output: &o}.line()...)
		}
		if uploaded {
			b = append(b, record{Uploaded: o.Path}.line()...)
		}
	}
	for _, output := range slices.Sorted(maps.Keys(l.tensors)) {
		for _, t := range l.tensors[output] {
			b = append(b, record{Tensor: &t}.line()...)
		}
	}
	if err := l.close(); err != nil { // Windows can't replace an open file
		return err
	}
	made, err := disk.CreateIn(dir, name, ".", 0o600, 0)
	if err == nil {
		err = made.WriteAll(b)
	}
	if err == nil {
		l.file, err = dir.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	}
	return err
}

// append adds a line to the journal, if there is one. Without force, the system may keep the line
// in memory for a while. If the machine loses power, the last lines are lost, and the run does
// their work again. Call append with the lock held.
func (l *Ledger) append(line []byte, force bool) error {
	if l.file == nil {
		return nil
	}
	_, err := l.file.Write(line)
	if err == nil && force {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// Close syncs and closes the journal. Later changes aren't stored.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.close()
}

func (l *Ledger) close() error {
	f := l.file
	if l.file = nil; f == nil {
		return nil
	}
	return errors.Join(f.Sync(), f.Close())
}

// ForRepo returns the journal for a commit of more outputs to a repo. It lists these outputs and
// all committed ones. It names former, the files of former conversions there, and committed outputs
// that must be made again, because these files are still ours. It never relies on anything that
// only this machine has.
func (l *Ledger) ForRepo(former []names.File, more []Output) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	brings := map[string]bool{}
	for _, o := range more {
		brings[o.Path] = true
	}
	b := l.begin(head{Former: former})
	for _, o := range l.all() {
		if o.From = ""; o.Committed || brings[o.Path] { // where the commit has it
			b = append(b, record{Output: &o}.line()...)
		}
	}
	return b
}

// begin returns the start of every journal: h with what all of them say, and the files that are
// ours but aren't outputs.
func (l *Ledger) begin(h head) []byte {
	h.Version, h.Plan, h.Result, h.Commit = version, l.digest, l.identity, l.commit
	b := record{head: &h}.line()
	for _, n := range l.named {
		b = append(b, record{Named: &n}.line()...)
	}
	return b
}
