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
	"github.com/df11-convert/df11-convert/internal/python"
)

// version is that of the journals that are written and read.
const version = 1

// record is one line of a journal: the head, or one thing that is done.
type record struct {
	*head
	Output   *Output `json:"output,omitempty"`
	Uploaded string  `json:"uploaded,omitempty"` // path of an output that the target's store has
	Tensor   *Tensor `json:"tensor,omitempty"`
	Named    *Named  `json:"named,omitempty"`
}

// Named says that a file of the folder has its name, or is about to get it.
type Named struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// head is the first line: whose journal it is.
type head struct {
	Version int    `json:"version"`
	Plan    string `json:"plan"`
	Source  string `json:"source,omitempty"` // Hub repo that the weights come from
	Keeps   bool   `json:"keeps,omitempty"`  // the folder is to keep the outputs
	// Former is the sha256 of files of the target that are ours, by path: what earlier journals and
	// manifests there have listed.
	Former map[string]string `json:"former,omitempty"`
}

func (r record) line() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("ledger: internal error: record does not marshal: " + err.Error())
	}
	return append(b, '\n')
}

// VersionError says that a newer program has written a journal.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf(
		"the journal of this conversion has version %d, this program knows version %d", e.Version,
		version)
}

// Hint says what can be done about it.
func (e *VersionError) Hint() string {
	return "continue with the newer df11-convert that began this conversion, or start again in another folder or repo"
}

// Limits of a journal that is read (docs/format.md §16).
const (
	maxObjects = 1 << 21
	maxValues  = 1 << 24
)

// A Claim is what a journal, or a manifest, says of the files of a target. None is of plan "".
type Claim struct {
	head
	Outputs map[string]Output // that are made, by path
	// sha256 of all else that is ours, with every sum that such a file may have
	Others  map[string][]string
	tensors map[string][]Tensor
}

func newClaim(h head) Claim {
	return Claim{h, map[string]Output{}, map[string][]string{}, map[string][]Tensor{}}
}

// ReadJournal returns what a journal claims. A torn last line, as a kill leaves it, ends it; a
// journal that is torn in its head, or is larger than any that a conversion leads to, claims
// nothing.
func ReadJournal(b []byte) Claim {
	var h head
	first, lines, _ := bytes.Cut(b, []byte("\n"))
	if python.Bounded(b, maxObjects, maxValues) != nil || python.Unmarshal(first, &h) != nil {
		return Claim{}
	}
	c := newClaim(h)
	for path, sum := range h.Former {
		c.Others[path] = []string{sum}
	}
	for line := range bytes.Lines(lines) {
		var r record
		if python.Unmarshal(line, &r) != nil {
			break
		}
		c.add(r)
	}
	return c
}

// add takes in a line of a journal. An output is in its folder until the target's store has it.
func (c *Claim) add(r record) {
	switch {
	case r.Output != nil:
		o := *r.Output
		o.Here = true
		c.Outputs[o.Path] = o
		delete(c.tensors, o.Path)
	case r.Uploaded != "":
		if o, ok := c.Outputs[r.Uploaded]; ok {
			o.Here, o.Uploaded = false, true
			c.Outputs[o.Path] = o
		}
	case r.Named != nil:
		c.Others[r.Named.Path] = append(c.Others[r.Named.Path], r.Named.SHA256)
	case r.Tensor != nil:
		c.tensors[r.Tensor.Output] = append(c.tensors[r.Tensor.Output], *r.Tensor)
	}
}

// OfManifest returns what the manifest of a finished conversion claims. Whether its files are still
// there has to be checked.
func OfManifest(m *metadata.Manifest) Claim {
	c := newClaim(head{Version: version, Plan: m.Plan.Digest, Source: m.Source.Repo})
	for _, f := range m.Outputs {
		if !f.Kind.Weights() {
			c.Others[f.Path] = []string{f.SHA256}
			continue
		}
		c.Outputs[f.Path] = Output{Path: f.Path, Size: f.Size, SHA256: f.SHA256,
			Place: Place{Here: true}}
	}
	for _, u := range m.Units {
		o := c.Outputs[u.File]
		u.File, u.Tensors = "", nil
		o.Units = append(o.Units, u)
		c.Outputs[o.Path] = o
	}
	return c
}

// Read fills an empty ledger from a claim on a folder: what it lists is here, unless it says that
// it was uploaded. Read ignores the claims of other plans.
func (l *Ledger) Read(c Claim) error {
	if c.Version > version {
		return &VersionError{c.Version}
	}
	if c.Plan == l.digest {
		maps.Copy(l.outputs, c.Outputs)
		maps.Copy(l.tensors, c.tensors)
	}
	return nil
}

// Done returns the outputs that a claim on a repo lists, as Read reads it.
func (c Claim) Done(digest string) ([]Output, error) {
	l := New(digest, false)
	err := l.Read(c)
	return l.Outputs(), err
}

// Save writes the whole journal to a file of a folder that appears complete, and lets every later
// change append to it. The file stays open until Close.
func (l *Ledger) Save(dir *os.Root, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.begin(l.stays, l.former)
	for _, o := range l.all() {
		uploaded := o.Uploaded || o.Committed && !l.stays // also by another machine
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
	if err := l.close(); err != nil { // Windows replaces no open file
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

// append adds a line to the journal, if there is one. Unless it is forced to disk, the system may
// keep it in memory for a while: a machine that loses power loses the last lines, and what they
// tell of is made again. The lock is held.
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

// Close puts the journal on disk and ends it. Later changes are not stored.
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

// ForRepo is the journal for a commit that brings more outputs to a repo in which former
// conversions have left files: it lists these outputs and all that is committed, and names outputs
// that are to be made again, whose files are still ours. It counts on nothing that only this
// machine has.
func (l *Ledger) ForRepo(former map[string]string, more []Output) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	brings := map[string]bool{}
	for _, o := range more {
		brings[o.Path] = true
	}
	b := l.begin(false, former)
	for _, o := range l.all() {
		if o.Committed || brings[o.Path] {
			b = append(b, record{Output: &o}.line()...)
		}
	}
	return b
}

// begin is how every journal begins: the head, and the files that are ours but no outputs.
func (l *Ledger) begin(keeps bool, former map[string]string) []byte {
	b := record{head: &head{Version: version, Plan: l.digest, Source: l.source, Keeps: keeps,
		Former: former}}.line()
	for _, n := range l.named {
		b = append(b, record{Named: &n}.line()...)
	}
	return b
}
