package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
)

// CompareOptions tell Compare how to name what it finds. The zero value works.
type CompareOptions struct {
	Unit    string   // for messages
	Names   []string // tensor names in encoding order; nil names them by number
	Sizes   []int64  // elements of each tensor; nil means the sizes given to Open or stored
	Workers int      // goroutines; 0 means one per processor

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
// about 2 MB per worker.
func (u *Unit) Compare(ctx context.Context, src io.ReaderAt, opt CompareOptions) error {
	if err := u.compareRanges(ctx, src, opt, u.ranges()); err != nil {
		return err
	}
	if !opt.Strict {
		return nil
	}
	warnings, err := u.CheckUnread(ctx)
	if err == nil && len(warnings) > 0 {
		return warnings[0]
	}
	return err
}

// CompareSample is Compare for nChunks of the unit's chunks: the first, the last and others that
// seed decides. It reads the arrays and src there only, and finds every fault inside them.
func (u *Unit) CompareSample(ctx context.Context, src io.ReaderAt, opt CompareOptions, nChunks int, seed uint64) error {
	return u.compareRanges(ctx, src, opt, u.sample(nChunks, seed))
}

// sample picks chunks: the two ends, then random ones without repetition.
func (u *Unit) sample(n int, seed uint64) []chunkRange {
	picked := map[int]bool{}
	rng := rand.New(rand.NewPCG(seed, 0))
	for c := 0; len(picked) < min(n, u.nChunks); c = rng.IntN(u.nChunks) {
		picked[c] = true
		if len(picked) < n {
			picked[u.nChunks-1] = true
		}
	}
	var rs []chunkRange
	for c := range picked {
		rs = append(rs, chunkRange{c, 1})
	}
	slices.SortFunc(rs, func(a, b chunkRange) int { return a.first - b.first })
	return rs
}

func (u *Unit) compareRanges(ctx context.Context, src io.ReaderAt, opt CompareOptions, ranges []chunkRange) error {
	ends, err := opt.tensorEnds(u)
	if err != nil {
		return err
	}
	return u.forEach(ctx, ranges, opt.Workers, func(b *block, r chunkRange) error {
		if err := u.load(b, r, src); err != nil {
			return fmt.Errorf("unit %s: %w", opt.Unit, err)
		}
		err := u.compareBlock(b)
		if m, ok := err.(*MismatchError); ok {
			opt.name(m, ends)
		} else if err != nil {
			err = fmt.Errorf("unit %s: %w", opt.Unit, err)
		}
		return err
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
		return nil, fmt.Errorf("unit %s: tensors of %d elements in a unit of %d", opt.Unit, sum, u.nElems)
	}
	return ends, nil
}

// name turns the unit's element number in m into a tensor and its element.
func (opt CompareOptions) name(m *MismatchError, ends []int64) {
	i, _ := slices.BinarySearch(ends, m.Elem+1)
	m.Unit = opt.Unit
	m.Tensor = fmt.Sprintf("#%d", i)
	if i < len(opt.Names) {
		m.Tensor = opt.Names[i]
	}
	if i > 0 {
		m.Elem -= ends[i-1]
	}
}

// compareBlock compares a loaded block with its source. The element in a *MismatchError is counted
// from the start of the unit.
func (u *Unit) compareBlock(b *block) error {
	return u.eachChunk(b, true, func(c *codes, d *chunkData) bool {
		return sameWeights(c.exponents[:d.n], d.sm, d.bf16)
	})
}

// diagnose finds out what is wrong with a chunk, slowly and exactly, by decoding it as the GPU
// kernel does: each window from its own stored gap. Without a source only the structure is judged.
func (u *Unit) diagnose(c *codes, d *chunkData, hasSource bool) error {
	cause := u.decodeAsKernel(c, d)
	for i := 0; hasSource && i < min(c.n, d.n); i++ {
		got, want := weight(c.exponents[i], d.sm[i]), binary.LittleEndian.Uint16(d.bf16[2*i:])
		if got != want {
			return &MismatchError{Elem: int64(u.positions[d.index]) + int64(i), Got: got, Want: want, Cause: cause}
		}
	}
	if cause == nil {
		panic("verify: internal error: the decoders disagree")
	}
	return cause
}
