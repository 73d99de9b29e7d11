package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// of returns a ledger with outputs, each named by the first letter of its sum.
func of(t testing.TB, outputs ...string) *ledger.Ledger {
	t.Helper()
	l := ledger.New("digest", false)
	for _, o := range outputs {
		if err := l.Add(ledger.Output{Path: o[:1], SHA256: o, Place: ledger.Place{Here: true}}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// keeping adds a spool that holds a tensor.
func keeping(t *testing.T, l *ledger.Ledger) *ledger.Ledger {
	t.Helper()
	if err := l.AddTensors([]ledger.Tensor{{Output: "z"}}); err != nil {
		t.Fatal(err)
	}
	return l
}

// An output that the target's journal lists is done, and replaces another output or a spool that is
// here.
func TestAdopt(t *testing.T) {
	here, there := keeping(t, of(t, "a", "b1", "c")), of(t, "a", "b2", "z")
	here.Adopt(there.Outputs())
	for path, sum := range map[string]string{"a": "a", "b": "b2", "c": "c", "z": "z"} {
		if got, _ := here.Output(path); got.SHA256 != sum || got.Committed != (path != "c") || got.Here != (path == "a" || path == "c") || !here.Done(path) {
			t.Errorf("%s is %+v", path, got)
		}
	}
	if len(here.Tensors("z")) > 0 {
		t.Errorf("tensors %v", here.Tensors("z"))
	}
}

// If the folder must keep an output that only the repo has, the run that adopts it makes it again,
// and so does the next run. An output that is here with other bytes doesn't count as the repo's.
func TestAdoptInAFolder(t *testing.T) {
	here := ledger.New("digest", true)
	for _, o := range []ledger.Output{{Path: "a", SHA256: "a"}, {Path: "c", SHA256: "c1"}} {
		o.Here = true
		must(t, here.Add(o))
	}
	here.Adopt(of(t, "a", "b", "c2").Outputs())
	if c, _ := here.Output("c"); !c.Here || c.Committed || c.SHA256 != "c1" {
		t.Error(c)
	}
	if !here.Done("a") || here.Done("b") || !committed(here, "a") || !committed(here, "b") {
		t.Error(here.Output("a"))
		t.Error(here.Output("b"))
	}
	path := filepath.Join(t.TempDir(), "journal")
	next := ledger.New("digest", true)
	must(t, errors.Join(save(t, here, path), here.Close()))
	if next.Read(ledger.ReadJournal(readFile(t, path))); !next.Done("a") || next.Done("b") {
		t.Error(next.Outputs())
	}
}

// save writes a ledger's journal to a path.
func save(t *testing.T, l *ledger.Ledger, path string) error {
	t.Helper()
	dir, err := os.OpenRoot(filepath.Dir(path))
	must(t, err)
	defer dir.Close()
	return l.Save(dir, filepath.Base(path))
}

// journaled returns a ledger with a journal in a new folder.
func journaled(t *testing.T) (l *ledger.Ledger, path string) {
	t.Helper()
	l, path = ledger.New("digest", false), filepath.Join(t.TempDir(), "journal")
	must(t, save(t, l, path))
	t.Cleanup(func() { _ = l.Close() })
	return l, path
}

// read returns a ledger made from a journal.
func read(t *testing.T, journal []byte) *ledger.Ledger {
	t.Helper()
	l := ledger.New("digest", false)
	l.Read(ledger.ReadJournal(journal))
	return l
}

var readFile = world.Read

// output returns the n-th output, with its own unit.
func output(n int) ledger.Output {
	path := fmt.Sprintf("model_layers_%d.safetensors", n)
	return ledger.Output{
		Path: path, Size: int64(n), SHA256: strings.Repeat("0", 64), Place: ledger.Place{Here: true},
		Units: []metadata.Unit{{Path: path, Status: metadata.DF11, NWeights: 1 << 20}},
	}
}

// A finished output adds a line to the journal and changes nothing else, so an output costs the
// same no matter how many there are.
func TestJournalIsAppendedTo(t *testing.T) {
	l, path := journaled(t)
	before, err := os.Stat(path)
	must(t, err)
	was := readFile(t, path)
	most := 0
	for n := range 500 {
		changes := []error{
			l.AddTensors([]ledger.Tensor{{Output: output(n).Path, CRC: 1 << 31}}),
			l.Add(output(n)),
			l.Uploaded(output(n).Path),
		}
		must(t, errors.Join(changes...))
		now := readFile(t, path)
		if !bytes.HasPrefix(now, was) {
			t.Fatalf("output %d has changed what was in the journal", n)
		}
		most = max(most, len(now)-len(was))
		was = now
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the journal was written again (%v)", err)
	}
	if most > 1500 {
		t.Errorf("an output takes %d bytes of the journal", most)
	}
}

// A ledger read from its journal knows the same as the ledger that wrote it, whether the lines were
// appended or written at once.
func TestJournalSaysItAll(t *testing.T) {
	l, path := journaled(t)
	tensor := ledger.Tensor{Output: "z", At: 4, CRC: 5}
	err := errors.Join(
		l.Add(output(1)), l.Add(output(2)), l.Uploaded(output(2).Path), l.AddTensors([]ledger.Tensor{tensor}),
		// this removes its spool
		l.AddTensors([]ledger.Tensor{{Output: output(1).Path}}), l.Add(output(1)),
	)
	must(t, err)
	check := func(journal []byte) {
		t.Helper()
		got := read(t, journal)
		if one, _ := got.Output(output(1).Path); !one.Here || one.Uploaded || len(one.Units) != 1 {
			t.Errorf("%+v", one)
		}
		if two, _ := got.Output(output(2).Path); two.Here || !two.Uploaded || two.Committed {
			t.Errorf("%+v", two)
		}
		if z := got.Tensors("z"); !slices.Equal(z, []ledger.Tensor{tensor}) {
			t.Errorf("%+v", z)
		}
		if one := got.Tensors(output(1).Path); len(one) > 0 {
			t.Errorf("a finished output has a spool: %+v", one)
		}
	}
	check(readFile(t, path))
	again := path + "-again"
	must(t, save(t, l, again))
	check(readFile(t, again))
}

// Wherever a journal ends, it's read without an error, and says only what its complete lines say.
func TestTornJournal(t *testing.T) {
	l, path := journaled(t)
	for n := range 3 {
		must(t, l.Add(output(n)))
	}
	journal := readFile(t, path)
	for end := range journal {
		// even if only the end of the line is missing
		whole := bytes.Count(journal[:end+1], []byte("\n"))
		if got := len(read(t, journal[:end]).Outputs()); got != max(0, whole-1) {
			t.Fatalf("%d of %d bytes: %d outputs in %d lines", end, len(journal), got, whole)
		}
	}
}

// A journal of another plan says nothing, and that of a newer program claims nothing.
func TestJournalOfAnother(t *testing.T) {
	l, path := journaled(t)
	must(t, l.Add(output(1)))
	journal := readFile(t, path)
	other := ledger.New("another", false)
	if other.Read(ledger.ReadJournal(journal)); len(other.Outputs()) > 0 {
		t.Errorf("%v", other.Outputs())
	}
	newer := bytes.Replace(journal, []byte(`"version":1`), []byte(`"version":9`), 1)
	if c := ledger.ReadJournal(newer); c.Plan != "" || len(c.Outputs) > 0 {
		t.Errorf("it claims %v", c)
	}
}

// It lists what is committed and what the commit brings, and nothing that only this machine has.
func TestJournalForARepo(t *testing.T) {
	l := keeping(t, ledger.New("digest", false))
	for n := range 4 {
		must(t, l.Add(output(n)))
	}
	must(t, l.Uploaded(output(3).Path))
	l.Committed([]ledger.Output{output(1)})
	if err := l.Add(ledger.Output{Path: "again", SHA256: "wrong"}); err != nil {
		t.Fatal(err)
	}
	l.Committed([]ledger.Output{{Path: "again"}})
	l.Keep(func(o ledger.Output) bool { return o.Path != "again" })
	if c := ledger.ReadJournal(l.ForRepo(nil, nil)); c.Outputs["again"].SHA256 != "" || !slices.Equal(c.Others, []names.File{{Path: "again", SHA256: "wrong"}}) {
		t.Errorf("an output that is to be made again is listed as %q, and otherwise as %v", c.Outputs["again"].SHA256, c.Others)
	}
	got := read(t, l.ForRepo([]names.File{{Path: "claimed", SHA256: "sum"}}, []ledger.Output{output(2)}))
	var paths []string
	for _, o := range got.Outputs() {
		paths = append(paths, o.Path)
		if o.Uploaded {
			t.Errorf("%s is said to be uploaded", o.Path)
		}
	}
	if !slices.Equal(paths, []string{output(1).Path, output(2).Path}) || len(got.Tensors("z")) > 0 {
		t.Errorf("%v, tensors %v", paths, got.Tensors("z"))
	}
}

// committed reports whether a commit of the target has an output.
func committed(l *ledger.Ledger, path string) bool {
	o, _ := l.Output(path)
	return o.Committed
}

// must ends the test if err isn't nil.
var must = world.Must
