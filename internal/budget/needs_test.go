package budget

import (
	"errors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"math"
	"math/rand/v2"
	"testing"
)

// No matter how far the fetcher is ahead of a slow conversion, the spools take no more than the
// plan says.
func TestSpoolsKeepTheBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 300 {
		var sizes []int64
		for range 1 + rng.IntN(12) {
			sizes = append(sizes, 1+rng.Int64N(100))
		}
		outputs, segments := nested(sizes...)
		if rng.IntN(2) == 0 {
			outputs, segments = inTurn(sizes...)
		}
		var unfinished, largest int64
		var complete []int64
		d := NewDemand(outputs, segments, false, false, 0)
		for _, a := range d.arrivals {
			if a.begin {
				unfinished += a.output.Size
			}
			held := unfinished
			for _, size := range complete[max(0, len(complete)-fullSpools):] {
				held += size
			}
			if largest = max(largest, held); a.last {
				unfinished -= a.output.Size
				complete = append(complete, a.output.Size)
			}
		}
		if got := d.spoolBound(); got < largest {
			t.Fatalf("%d: %d of spools at once, at most %d planned", sizes, largest, got)
		}
	}
}

// With the budget that plans and errors name, a conversion can be laid out. With one byte less it
// can't, and that error names the same budget.
func TestLeastDiskIsTheLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		var sizes []int64
		for range 1 + rng.IntN(5) {
			sizes = append(sizes, 1+rng.Int64N(20*mb))
		}
		outputs, segments := nested(sizes...)
		local := rng.IntN(4) == 0
		want := NewDemand(outputs, segments, local, rng.IntN(2) == 0, rng.Int64N(20*mb))
		least := want.Least()
		if _, err := want.Divide(least); err != nil {
			t.Fatalf("%d with %+v: %v", sizes, want, err)
		}
		if tooSmall := (*DiskError)(nil); least > 1 {
			if _, err := want.Divide(least - 1); !errors.As(err, &tooSmall) || tooSmall.Need != least {
				t.Fatalf("%d with %+v: %v, want %d", sizes, want, err, least)
			}
		}
	}
}

// TestFinishedFiles checks the bound against every set of files that may be on the disk.
func TestFinishedFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var outputs []*spans.Output
		sizes := map[*spans.Output]int64{}
		for range 1 + r.IntN(40) {
			o := new(spans.Output)
			outputs = append(outputs, o)
			sizes[o] = int64(float64(UploadBytes) * math.Pow(2, -8*r.Float64()+1))
		}
		size := func(o *spans.Output) int64 { return sizes[o] }
		bound := finished(outputs, size)
		for range 20 {
			r.Shuffle(len(outputs), func(i, k int) { outputs[i], outputs[k] = outputs[k], outputs[i] })
			var held, share int64
			others := otherFiles
			for i, o := range outputs {
				if share += UploadShare(size(o)); i >= Uploads || share > UploadBytes {
					if others--; others < 0 {
						break
					}
				}
				held += size(o)
			}
			if held > bound {
				t.Fatalf("%d bytes on the disk, at most %d expected", held, bound)
			}
		}
	}
}
