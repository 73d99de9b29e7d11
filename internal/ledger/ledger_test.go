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
)

// of makes a ledger with one checkpoint of the file f, whose state is its offset, and with outputs made from f. An output is
// named by the first letter of its sum.
func of(t testing.TB, offset int64, integrity metadata.Integrity, outputs ...string) *ledger.Ledger {
	t.Helper()
	l := ledger.New("digest", "part", false)
	var errs []error
	if offset > 0 || integrity != "" {
		errs = append(errs, l.AddCheckpoint(ledger.Checkpoint{File: "f", Offset: offset, State: []byte{byte(offset)}, Integrity: integrity}))
	}
	for _, o := range outputs {
		errs = append(errs, l.Add(ledger.Output{
			Path: o[:1], SHA256: o, Prefixes: []ledger.Prefix{{File: "f", End: 1}}, Place: ledger.Place{Here: true},
		}))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return l
}

// keeping adds a spool that holds a tensor of f, under its hash.
func keeping(t *testing.T, l *ledger.Ledger) *ledger.Ledger {
	t.Helper()
	if err := l.AddTensors([]ledger.Tensor{{Output: "z", Prefix: &ledger.Prefix{File: "f", End: 2}}}); err != nil {
		t.Fatal(err)
	}
	return l
}

const last = 1 << 40 // behind every checkpoint

// TestAdoptCheckpoints: of two journals that know of each other's outputs the one that is ahead is used, and none where each
// knows of something that the other does not: its hash would not cover that.
func TestAdoptCheckpoints(t *testing.T) {
	for _, tc := range []struct {
		name          string
		here, there   *ledger.Ledger
		want          int64
		wantIntegrity metadata.Integrity
	}{
		{"a fresh disk", of(t, 0, ""), of(t, 7, "", "a"), 7, ""},
		{"ahead here", of(t, 9, "", "a", "b"), of(t, 7, "", "a"), 9, ""},
		{"ahead there", of(t, 7, "", "a"), of(t, 9, "", "a"), 9, ""},
		{"ahead there, spools here", keeping(t, of(t, 7, "", "a")), of(t, 9, "", "a"), 7, ""},
		{"a spool here is an output there", keeping(t, of(t, 7, "", "a")), of(t, 9, "", "a", "z"), 9, ""},
		{"more there", of(t, 9, "", "a"), of(t, 7, "", "a", "b"), 7, ""},
		{"more there, spools here", keeping(t, of(t, 7, "", "a")), of(t, 9, "", "a", "b"), 0, ""},
		{"more on both sides", of(t, 7, "", "a", "c"), of(t, 9, "", "a", "b"), 0, ""},
		{"another output", of(t, 7, "", "a"), of(t, 9, "", "a2"), 0, ""},
		{"final there", keeping(t, of(t, 7, "", "a")), of(t, 0, metadata.Streamed, "a", "b"), 0, metadata.Streamed},
		{"final there, more here", of(t, 7, "", "a", "c"), of(t, 0, metadata.Streamed, "a"), 7, ""},
	} {
		tc.here.Adopt(tc.there)
		if c := tc.here.Checkpoint("f", last); c.Offset != tc.want || c.Integrity != tc.wantIntegrity {
			t.Errorf("%s: a checkpoint at %d %s, want %d %s", tc.name, c.Offset, c.Integrity, tc.want, tc.wantIntegrity)
		}
		for _, o := range []string{"a", "b"} {
			if theirs, ok := tc.there.Output(o); ok {
				if got, _ := tc.here.Output(o); !got.Committed || got.SHA256 != theirs.SHA256 || !tc.here.Done(o) {
					t.Errorf("%s: %s is %+v", tc.name, o, got)
				}
			}
		}
	}
}

// TestAdoptInAFolder: an output of the repo that the folder has to keep is made again if it is not here, by the run that adopts it
// and by the next one. One that is here with other bytes is not taken for that of the repo.
func TestAdoptInAFolder(t *testing.T) {
	here := ledger.New("digest", "part", true)
	for _, o := range []ledger.Output{{Path: "a", SHA256: "a"}, {Path: "c", SHA256: "c1"}} {
		o.Here = true
		if err := here.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	here.Adopt(of(t, 7, "", "a", "b", "c2"))
	if c, _ := here.Output("c"); !c.Here || c.Committed || c.SHA256 != "c1" {
		t.Error(c)
	}
	if !here.Done("a") || here.Done("b") || !committed(here, "a") || !committed(here, "b") {
		t.Error(here.Output("a"))
		t.Error(here.Output("b"))
	}
	path := filepath.Join(t.TempDir(), "journal")
	next := ledger.New("digest", "part", true)
	if err := errors.Join(here.Save(path), here.Close(), next.Read(readFile(t, path))); err != nil || !next.Done("a") || next.Done("b") {
		t.Error(next.Outputs(), err)
	}
	if c := here.Checkpoint("f", last); c.Offset != 0 {
		t.Errorf("a checkpoint at %d: b would not be under its hash", c.Offset)
	}
}

// TestCheckpointsRise: a checkpoint at an offset is found by whatever is not before it; a later one at a lower offset
// replaces those behind it, a final one all, and trimming takes those behind an offset.
func TestCheckpointsRise(t *testing.T) {
	l := ledger.New("digest", "part", false)
	add := func(offsets ...int64) {
		for _, off := range offsets {
			if err := l.AddCheckpoint(ledger.Checkpoint{File: "f", Offset: off}); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(want map[int64]int64) {
		t.Helper()
		for at, offset := range want {
			if c := l.Checkpoint("f", at); c.Offset != offset {
				t.Errorf("up to %d: %d, want %d", at, c.Offset, offset)
			}
		}
	}
	add(10, 20, 30)
	check(map[int64]int64{9: 0, 10: 10, 29: 20, last: 30})
	add(15)
	check(map[int64]int64{9: 0, 14: 10, last: 15})
	l.TrimCheckpoints("f", 14)
	check(map[int64]int64{last: 10})
	if err := l.AddCheckpoint(ledger.Checkpoint{File: "f", Integrity: metadata.Proof}); err != nil {
		t.Fatal(err)
	}
	if _, final := l.Final("f"); !final {
		t.Error("the final checkpoint is lost")
	}
	add(5)
	check(map[int64]int64{last: 5})
	l.TrimCheckpoints("f", -1)
	check(map[int64]int64{last: 0})
}

// journaled makes a ledger whose journal lies in a new folder.
func journaled(t *testing.T) (l *ledger.Ledger, path string) {
	t.Helper()
	l, path = ledger.New("digest", "part", false), filepath.Join(t.TempDir(), "journal")
	if err := l.Save(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, path
}

// read makes a ledger of what a journal says.
func read(t *testing.T, journal []byte) *ledger.Ledger {
	t.Helper()
	l := ledger.New("digest", "part", false)
	if err := l.Read(journal); err != nil {
		t.Fatal(err)
	}
	return l
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// output is the n-th output, with a unit of its own.
func output(n int) ledger.Output {
	path := fmt.Sprintf("model_layers_%d.safetensors", n)
	return ledger.Output{
		Path: path, Size: int64(n), SHA256: strings.Repeat("0", 64), Place: ledger.Place{Here: true},
		Units: []ledger.Unit{{Path: path, Status: metadata.DF11, Weights: 1 << 20}}, Prefixes: []ledger.Prefix{{File: "f", End: 1}},
	}
}

// TestJournalIsAppendedTo: a finished output adds a line to the journal and leaves what is there, so that the cost of an
// output does not grow with their number.
func TestJournalIsAppendedTo(t *testing.T) {
	l, path := journaled(t)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	was := readFile(t, path)
	most := 0
	for n := range 500 {
		changes := []error{
			l.AddTensors([]ledger.Tensor{{Output: output(n).Path, CRC: 1 << 31, Prefix: &ledger.Prefix{File: "f", End: 1, SHA256: strings.Repeat("0", 64)}}}),
			l.AddCheckpoint(ledger.Checkpoint{File: "f", Offset: int64(n + 1), State: make([]byte, 108)}),
			l.Add(output(n)),
			l.Uploaded(output(n).Path),
		}
		if err := errors.Join(changes...); err != nil {
			t.Fatal(err)
		}
		now := readFile(t, path)
		if !bytes.HasPrefix(now, was) {
			t.Fatalf("output %d has changed what was in the journal", n)
		}
		most = max(most, len(now)-len(was))
		was = now
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the journal was written anew (%v)", err)
	}
	if most > 1500 {
		t.Errorf("an output takes %d bytes of the journal", most)
	}
}

// TestJournalSaysItAll: a ledger that is read from its journal knows what the one that wrote it did, whether its lines were
// appended or written at once.
func TestJournalSaysItAll(t *testing.T) {
	l, path := journaled(t)
	tensor := ledger.Tensor{Output: "z", At: 4, CRC: 5, Prefix: &ledger.Prefix{File: "f", End: 6, SHA256: "7"}}
	err := errors.Join(
		l.Add(output(1)), l.Add(output(2)), l.Uploaded(output(2).Path), l.AddTensors([]ledger.Tensor{tensor}),
		l.AddTensors([]ledger.Tensor{{Output: output(1).Path}}), l.Add(output(1)), // its spool goes with that
		l.AddCheckpoint(ledger.Checkpoint{File: "f", Offset: 8, State: []byte{9}}),
		l.AddCheckpoint(ledger.Checkpoint{File: "g", Integrity: metadata.Streamed, SHA256: "10"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	check := func(journal []byte) {
		t.Helper()
		got := read(t, journal)
		if one, _ := got.Output(output(1).Path); !one.Here || one.Uploaded || len(one.Units) != 1 || len(one.Prefixes) != 1 {
			t.Errorf("%+v", one)
		}
		if two, _ := got.Output(output(2).Path); two.Here || !two.Uploaded || two.Committed {
			t.Errorf("%+v", two)
		}
		if z := got.Tensors("z"); len(z) != 1 || z[0].At != tensor.At || z[0].CRC != tensor.CRC || *z[0].Prefix != *tensor.Prefix {
			t.Errorf("%+v", z)
		}
		if one := got.Tensors(output(1).Path); len(one) > 0 {
			t.Errorf("a finished output has a spool: %+v", one)
		}
		f, g := got.Checkpoint("f", last), got.Checkpoint("g", last)
		if f.Offset != 8 || !bytes.Equal(f.State, []byte{9}) || g.Integrity != metadata.Streamed || g.SHA256 != "10" {
			t.Errorf("%+v, %+v", f, g)
		}
	}
	check(readFile(t, path))
	again := path + "-again"
	if err := l.Save(again); err != nil {
		t.Fatal(err)
	}
	check(readFile(t, again))
}

// TestTornJournal: wherever a journal ends, it is read without an error, and says nothing but what its whole lines say.
func TestTornJournal(t *testing.T) {
	l, path := journaled(t)
	for n := range 3 {
		if err := l.Add(output(n)); err != nil {
			t.Fatal(err)
		}
	}
	journal := readFile(t, path)
	for end := range journal {
		whole := bytes.Count(journal[:end+1], []byte("\n")) // also where only the end of the line is missing
		if got := len(read(t, journal[:end]).Outputs()); got != max(0, whole-1) {
			t.Fatalf("%d of %d bytes: %d outputs in %d lines", end, len(journal), got, whole)
		}
	}
}

// TestJournalOfAnother: a journal of another plan or part says nothing; one of a newer program is refused, with a hint.
func TestJournalOfAnother(t *testing.T) {
	l, path := journaled(t)
	if err := l.Add(output(1)); err != nil {
		t.Fatal(err)
	}
	journal := readFile(t, path)
	for _, other := range []*ledger.Ledger{ledger.New("another", "part", false), ledger.New("digest", "another", false)} {
		if err := other.Read(journal); err != nil || len(other.Outputs()) > 0 {
			t.Errorf("%v, %v", other.Outputs(), err)
		}
	}
	newer := bytes.Replace(journal, []byte(`"version":2`), []byte(`"version":3`), 1)
	err := ledger.New("digest", "part", false).Read(newer)
	version := (*ledger.VersionError)(nil)
	if !errors.As(err, &version) || version.Version != 3 || !strings.Contains(err.Error(), "version 3") || version.Hint() == "" {
		t.Errorf("a journal of a newer program: %v", err)
	}
	if plan, _, files := ledger.Claimed(newer); plan != "digest" || files[output(1).Path] != output(1).SHA256 {
		t.Errorf("it claims %v for %s", files, plan)
	}
}

// TestJournalForARepo: it names what is committed and what the commit brings, nothing that only this machine has.
func TestJournalForARepo(t *testing.T) {
	l := keeping(t, ledger.New("digest", "part", false))
	for n := range 4 {
		if err := l.Add(output(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Uploaded(output(3).Path); err != nil {
		t.Fatal(err)
	}
	l.Committed([]ledger.Output{output(1)})
	checkpoints := []ledger.Checkpoint{{File: "f", Offset: 3, State: []byte{4}}, {File: "g"}}
	got := read(t, l.ForRepo([]string{"claimed"}, []ledger.Output{output(2)}, checkpoints))
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
	if c := got.Checkpoint("f", last); c.Offset != 3 {
		t.Errorf("a checkpoint at %d", c.Offset)
	}
}

// TestHashGoesOn: a hash is restored at the last checkpoint before an offset; a broken state is none.
func TestHashGoesOn(t *testing.T) {
	l := of(t, 7, "") // its state is no hash
	if h, from := l.Checkpoint("f", last).Hash(); from != 0 || h.Size() != 32 {
		t.Errorf("a broken state is restored at %d", from)
	}
}

// committed reports whether a commit of the target names an output.
func committed(l *ledger.Ledger, path string) bool {
	o, _ := l.Output(path)
	return o.Committed
}
