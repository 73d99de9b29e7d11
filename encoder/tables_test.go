package encoder

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// TestTables checks that the counts of a unit's exponents alone give the tables, the figures, and
// the limits that its two passes find.
func TestTables(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	supported := 0
	for range 300 {
		bf16 := make([]byte, 2*(1+r.IntN(3000)))
		low, width := r.IntN(240), 1+r.IntN(60)
		for i := 0; i < len(bf16); i += 2 {
			e := low + min(r.IntN(width), r.IntN(width), r.IntN(width))
			bf16[i], bf16[i+1] = byte(e<<7)|byte(r.IntN(128)), byte(min(e, 255)>>1)
		}
		c, err := NewCounter([]int64{int64(len(bf16) / 2)})
		if err != nil {
			t.Fatal(err)
		}
		c.Add(0, bf16)
		u, want := c.Finish()
		var counts [256]uint64
		half := r.IntN(len(bf16)/2+1) * 2
		CountExponents(&counts, bf16[:half])
		CountExponents(&counts, append(bytes.Clone(bf16[half:]), 7)) // half of a weight more
		luts, stats, got := Tables(counts)
		if want != nil {
			first, _ := errors.AsType[*UnsupportedError](want)
			second, _ := errors.AsType[*UnsupportedError](got)
			if first == nil || second == nil || *first != *second {
				t.Fatalf("%v, want %v", got, want)
			}
			continue
		}
		supported++
		if got != nil || !bytes.Equal(luts, u.rows) || stats != u.Stats() {
			t.Fatalf("%v: other tables or figures, %+v, want %+v", got, stats, u.Stats())
		}
	}
	if supported < 30 || supported > 290 {
		t.Errorf("%d of 300 units were supported", supported)
	}
	CountExponents(nil, make([]byte, 2))
	if _, _, err := Tables([256]uint64{}); err == nil {
		t.Error("no exponent has tables")
	}
	if _, _, err := Tables([256]uint64{120: 1 << 63, 121: 1 << 63}); err == nil {
		t.Error("too many weights have tables")
	}
}
