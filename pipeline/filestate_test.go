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
