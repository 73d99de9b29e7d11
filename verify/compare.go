package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
)

// CompareOptions tell Compare how to name what it finds. The zero value works.
type CompareOptions struct {
	Unit    string   // for messages
	Names   []string // tensor names in encoding order; nil names them by number
	Sizes   []int64  // elements of each tensor; nil means the sizes given to Open or stored
	Workers int      // goroutines; 0 means one per processor

	// Variant names one of Variants, empty for the best of them. All find the same.
	Variant string

	// Strict turns what CheckUnread finds into an error: nothing but the official encoder's own bytes
	// passes.
	Strict bool
}

// Compare decodes the whole unit and compares it with src, the unit's 2N bytes of little-endian BF16
// weights: all 16 bits of every weight, and the stored gaps and output positions against those that
// the decoded codes have (docs/format.md §7). src is read concurrently.
//
// The first fault in the order of the weights is returned, independent of the number of workers:
// a *[MismatchError] when a weight decodes to other bits, a *[StructureError] when a chunk is at odds
// with itself although its weights agree. Other errors come from reading or from ctx. Memory is
// at most 1.3 MB per worker.
func (u *Unit) Compare(ctx context.Context, src io.ReaderAt, opt CompareOptions) error {
	if err := u.compareSet(ctx, src, opt, u.all()); err != nil {
		return err
	}
	if !opt.Strict {
		return nil
	}
	warnings, err := u.CheckUnread(ctx)
	if err == nil && len(warnings) > 0 {
		err = warnings[0]
	}
	return opt.wrap(err)
}

// CompareSample is Compare for nChunks of the unit's chunks, at least one: the first, the last and others
// that seed decides. It reads the arrays and src there only, and finds every fault inside them.
func (u *Unit) CompareSample(ctx context.Context, src io.ReaderAt, opt CompareOptions, nChunks int, seed uint64) error {
	return u.compareSet(ctx, src, opt, u.sample(nChunks, seed))
}

// sample picks n chunks: the two ends, then random ones without repetition.
func (u *Unit) sample(n int, seed uint64) chunkSet {
	n = min(max(n, 1), u.nChunks)
	rng := rand.New(rand.NewPCG(seed, 0))
	picked := map[int]bool{}
	for _, c := range []int{0, u.nChunks - 1} {
		if len(picked) < n {
			picked[c] = true
		}
	}
	for len(picked) < n {
		picked[rng.IntN(u.nChunks)] = true
	}
	singles := slices.AppendSeq([]int{}, maps.Keys(picked)) // not nil, which means all
	slices.Sort(singles)
	return chunkSet{u.nChunks, singles}
}

func (u *Unit) compareSet(ctx context.Context, src io.ReaderAt, opt CompareOptions, set chunkSet) error {
	ends, err := opt.tensorEnds(u)
	if err != nil {
		return err
	}
	same, err := findSame(opt.Variant)
	if err != nil {
		return err
	}
	return u.forEach(ctx, set, opt.Workers, func(b *block, r chunkRange) error {
		b.same = same
		err := u.load(b, r, src)
		if err == nil {
			err = u.compareBlock(b, src)
		}
		return opt.name(err, ends)
	})
}

// tensorEnds gives the running sums of the tensor sizes.
func (opt CompareOptions) tensorEnds(u *Unit) ([]int64, error) {
	if opt.Sizes == nil {
		return u.ends, nil
	}
	var ends []int64
	sum := int64(0)
	for _, n := range opt.Sizes {
		sum += n
		ends = append(ends, sum)
	}
	if sum != u.nElems {
		return nil, opt.wrap(fmt.Errorf("tensors of %d elements in a unit of %d", sum, u.nElems))
	}
	return ends, nil
}

// name adds to an error what the caller calls things: the unit, and for a mismatch the tensor and its
// element instead of the unit's.
func (opt CompareOptions) name(err error, ends []int64) error {
	var m *MismatchError
	if !errors.As(err, &m) {
		return opt.wrap(err)
	}
	i, _ := slices.BinarySearch(ends, m.Elem+1)
	m.Unit = opt.Unit
	m.Tensor = fmt.Sprintf("#%d", i)
	if i < len(opt.Names) {
		m.Tensor = opt.Names[i]
	}
	if i > 0 {
		m.Elem -= ends[i-1]
	}
	return m
}

// wrap puts the unit's name before an error.
func (opt CompareOptions) wrap(err error) error {
	if err == nil || opt.Unit == "" {
		return err
	}
	return fmt.Errorf("unit %s: %w", opt.Unit, err)
}

// compareBlock compares a loaded block with its source. The element in a *MismatchError is counted
// from the start of the unit.
func (u *Unit) compareBlock(b *block, src io.ReaderAt) error {
	return u.eachChunk(b, src, func(c *codes, d *chunkData) bool {
		return b.same(c.exponents[:d.n], d.sm, d.bf16)
	})
}
