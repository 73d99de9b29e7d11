package verify

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/df11-convert/df11-convert/internal/alloc"
)

// TestCountsEveryDifference: as many weights are counted as were changed, whatever chunks they are in.
func TestCountsEveryDifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for name, s := range testUnits() {
		u, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		n := len(s.source) / 2
		for _, k := range []int{0, 1, 2, n / 2, n} {
			other := bytes.Clone(s.source)
			for _, i := range rng.Perm(n)[:k] {
				other[2*i+rng.IntN(2)] ^= 1 << rng.IntN(8)
			}
			got, of, err := u.CountDifferences(t.Context(), bytes.NewReader(other), 3)
			if got != int64(k) || of != int64(n) || err != nil {
				t.Errorf("%s: %d of %d differ, want %d of %d: %v", name, got, of, k, n, err)
			}
			got, of, err = u.CountSampleDifferences(t.Context(), bytes.NewReader(other), 1, 2, 9)
			found := u.CompareSample(t.Context(), bytes.NewReader(other), CompareOptions{}, 2, 9)
			if got > int64(k) || of > int64(n) || of == 0 || (got > 0) != (found != nil) || err != nil {
				t.Errorf("%s: in a sample %d of %d differ, found %v: %v", name, got, of, found, err)
			}
		}
	}
}

// TestCountAgreesWithCompare: where Compare finds a weight that differs, there is something to count, and only there. Faults
// that change no weight count nothing.
func TestCountAgreesWithCompare(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for name, s := range testUnits() {
		for _, array := range []string{arrayEncodedExponent, arraySignMantissa, arrayGaps} {
			for range 200 {
				c := s.clone()
				b := *c.array(array)
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
				u, err := c.open()
				if err != nil {
					continue
				}
				found := u.Compare(t.Context(), bytes.NewReader(c.source), CompareOptions{})
				m := (*MismatchError)(nil)
				differ := errors.As(found, &m)
				got, _, err := u.CountDifferences(t.Context(), bytes.NewReader(c.source), 2)
				if err != nil || differ && got == 0 || found == nil && got > 0 {
					t.Fatalf("%s, %s: %d differ, but Compare says %v: %v", name, array, got, found, err)
				}
			}
		}
	}
}

// TestUnitsShareBlocks: what is allocated to check a unit does not grow with its weights.
func TestUnitsShareBlocks(t *testing.T) {
	s := testUnits()["normal"]
	u, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	alloc.Repeated(t, 8<<10, func() {
		if err := u.Compare(t.Context(), bytes.NewReader(s.source), CompareOptions{Workers: 1}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCountsWeightsWithoutCode: where a chunk holds far fewer codes than weights, all the weights without one count.
func TestCountsWeightsWithoutCode(t *testing.T) {
	fewest := maxCodes
	for _, fill := range []byte{0, 0xff} { // one of them repeats the longest code
		s := testUnits()["long"].clone()
		for i := range s.stream[:chunkBytes-8] {
			s.stream[i] = fill
		}
		u, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		b := new(block)
		if err := u.load(b, chunkRange{0, 1}, bytes.NewReader(s.source)); err != nil {
			t.Fatal(err)
		}
		d, c := b.chunk(&u.layout, 0), &b.codes[0]
		_, _ = u.decodeAsKernel(c, &d)
		fewest = min(fewest, c.n)
		got, _, err := u.CountDifferences(t.Context(), bytes.NewReader(s.source), 1)
		if without := d.n - c.n; err != nil || got < int64(without) || got > int64(d.n) {
			t.Errorf("%#x: %d differ, but %d of %d weights have no code: %v", fill, got, without, d.n, err)
		}
	}
	if fewest > maxCodes/8 {
		t.Errorf("the chunk has %d codes: nothing was tried", fewest)
	}
}
