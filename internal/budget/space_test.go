package budget

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// What is refused, and what the error says, follows from what is free and from --disk alone. The
// reserve never counts: whatever passes the check also gets the disk that it asked for.
func TestReserveIsNoBudget(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		size := func() int64 { return rng.Int64N(1 << (1 + rng.IntN(40))) }
		s := Space{Folder: "work", Free: size(), Stays: size() / 2, Limit: size()}
		switch rng.IntN(4) {
		case 0:
			s.Free = -1
		case 1:
			s.Limit = 0
		}
		need := size()
		fits := (s.Free < 0 || s.Stays+need <= s.Free) && (s.Limit == 0 || need <= s.Limit)
		err := s.Check(need)
		if (err == nil) != fits {
			t.Fatalf("%+v, %d needed: %v", s, need, err)
		}
		if e := (*DiskError)(nil); errors.As(err, &e) && e.Need <= e.Have {
			t.Fatalf("%+v, %d needed: %v", s, need, err)
		}
		for name, got := range map[string]int64{"outputs": s.ForOutputs(need), "copies": s.ForCopies()} {
			if fits && got != 0 && got < need {
				t.Fatalf("%+v, %d needed: %s get %d", s, need, name, got)
			}
			if limited := s.Limit > 0 || s.Free >= 0; (got > 0) != limited {
				t.Fatalf("%+v: %s get %d", s, name, got)
			}
		}
	}
}
