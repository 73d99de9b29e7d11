package verify

import (
	"context"
	"encoding/binary"
	"io"
	"sync/atomic"
)

// CountDifferences counts the weights that Compare finds different from src, where Compare stops at the first of them. Wrong
// chunks are decoded as a GPU would decode them; a weight for which such a chunk has no code counts as different. A fault that
// changes no weight is not counted. of is the number of weights that were compared.
func (u *Unit) CountDifferences(ctx context.Context, src io.ReaderAt, workers int) (differing, of int64, err error) {
	return u.countRanges(ctx, src, workers, u.all())
}

// CountSampleDifferences is CountDifferences for the chunks that CompareSample chooses.
func (u *Unit) CountSampleDifferences(ctx context.Context, src io.ReaderAt, workers, nChunks int, seed uint64) (differing, of int64, err error) {
	return u.countRanges(ctx, src, workers, u.sample(nChunks, seed))
}

func (u *Unit) countRanges(ctx context.Context, src io.ReaderAt, workers int, ranges []chunkRange) (differing, of int64, err error) {
	var n, all atomic.Int64
	v := fastest()
	err = eachBlock(ctx, ranges, workers, func(b *block, r chunkRange) error {
		if err := u.load(b, r, src); err != nil {
			return err
		}
		all.Add(int64(len(b.sm)))
		return u.eachDecoded(v, b, func(ok bool, c *codes, d *chunkData) error {
			if !ok || !v.same(c.exponents[:d.n], d.sm, d.bf16) {
				if !ok {
					_, _ = u.decodeAsKernel(c, d) // only its weights count here
				}
				n.Add(int64(c.differing(d)))
			}
			return nil
		})
	})
	return n.Load(), all.Load(), err
}

// differing counts the weights of a chunk that differ from its source.
func (c *codes) differing(d *chunkData) (n int) {
	have := min(c.n, d.n)
	for i := range have {
		if weight(c.exponents[i], d.sm[i]) != binary.LittleEndian.Uint16(d.bf16[2*i:]) {
			n++
		}
	}
	return n + d.n - have
}
