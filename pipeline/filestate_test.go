package pipeline

import (
	"crypto/sha256"
	"testing"
)

// TestCheckpointWaitsForTheDealer: no checkpoint lies behind what was dealt out, however far the reader is ahead, since
// only the dealer compares the bytes with what is there already.
func TestCheckpointWaitsForTheDealer(t *testing.T) {
	fs := &fileState{path: "f", size: 100}
	for _, off := range []int64{0, 10, 20, 30} {
		fs.mark(off, sha256.New(), false)
	}
	for dealt, want := range map[int64]int64{0: 0, 15: 10, 20: 20, 100: 30} {
		fs.dealtTo(dealt)
		if c := fs.checkpoint(func(*task) bool { return false }); c.Offset != want || c.KeptOffset != want {
			t.Errorf("dealt to %d: a checkpoint at %d, with spools %d; want %d", dealt, c.Offset, c.KeptOffset, want)
		}
	}
}

// TestTrimCheckpoints: a checkpoint is forgotten as soon as bytes before it are missing; that one tensor of two is there
// is no reason to go on behind the other.
func TestTrimCheckpoints(t *testing.T) {
	before := Checkpoint{File: "f", Offset: 10, State: []byte{1}, KeptOffset: 60, KeptState: []byte{2}}
	for _, tc := range []struct {
		name   string
		held   int64 // of the 50 bytes from 20 on
		before Checkpoint
		want   Checkpoint
	}{
		{"all is there", 45, before, before},
		{"the spool is gone", 0, before, Checkpoint{File: "f", Offset: 10, State: []byte{1}}},
		{"an output is gone", 0, Checkpoint{File: "f", Offset: 30, State: []byte{1}}, Checkpoint{File: "f"}},
		{"a proved one is gone", 45, Checkpoint{File: "f", Integrity: integrityProof, SHA256: "x"}, Checkpoint{File: "f"}},
	} {
		x := &task{path: "o", size: 50}
		x.left.Store(50)
		x.holds.keepIn(&keptSpool{}, []heldRun{{N: tc.held}})
		fs := &fileState{path: "f", size: 100, segs: []segment{{off: 20, end: 70, dst: []delivery{{task: x}}}}}
		r := &run{ledger: newLedger("", ""), files: []*fileState{fs}}
		r.ledger.setFile(tc.before)
		r.trimCheckpoints()
		if got := r.ledger.file("f"); got.Offset != tc.want.Offset || got.KeptOffset != tc.want.KeptOffset || got.Integrity != tc.want.Integrity {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// TestAdoptCheckpoints: of two journals that know of each other's outputs the one that is ahead is used, and none where
// each knows of something that the other does not: its hash would not cover that.
func TestAdoptCheckpoints(t *testing.T) {
	journal := func(offset int64, integrity string, outputs ...string) *ledger {
		l := newLedger("", "")
		l.setFile(Checkpoint{File: "f", Offset: offset, Integrity: integrity})
		for _, o := range outputs {
			l.add(Output{Path: o[:1], SHA256: o, Prefixes: []Prefix{{File: "f", End: 1}}})
		}
		return l
	}
	for _, tc := range []struct {
		name          string
		here, there   *ledger
		spools        bool
		want          int64
		wantIntegrity string
	}{
		{"a fresh disk", newLedger("", ""), journal(7, "", "a"), false, 7, ""},
		{"ahead here", journal(9, "", "a", "b"), journal(7, "", "a"), false, 9, ""},
		{"ahead there", journal(7, "", "a"), journal(9, "", "a"), false, 9, ""},
		{"ahead there, spools here", journal(7, "", "a"), journal(9, "", "a"), true, 7, ""},
		{"more there", journal(9, "", "a"), journal(7, "", "a", "b"), false, 7, ""},
		{"more there, spools here", journal(7, "", "a"), journal(9, "", "a", "b"), true, 0, ""},
		{"more on both sides", journal(7, "", "a", "c"), journal(9, "", "a", "b"), false, 0, ""},
		{"another output", journal(7, "", "a"), journal(9, "", "a2"), false, 0, ""},
		{"final there", journal(7, "", "a"), journal(0, integrityStreamed, "a", "b"), true, 0, integrityStreamed},
		{"final there, more here", journal(7, "", "a", "c"), journal(0, integrityStreamed, "a"), false, 7, ""},
	} {
		tc.here.adopt(tc.there, tc.spools)
		if c := tc.here.file("f"); c.Offset != tc.want || c.Integrity != tc.wantIntegrity {
			t.Errorf("%s: a checkpoint at %d %s, want %d %s", tc.name, c.Offset, c.Integrity, tc.want, tc.wantIntegrity)
		}
	}
}
