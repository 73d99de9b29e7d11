package verify

import (
	"context"
	"fmt"
)

// DecodeRange decodes elements elem to elem+n into dst, 2n bytes of the caller's, as little-endian BF16. It reads only the
// chunks that hold them. As in [Unit.Compare], gaps or positions that disagree with the codes are an error; dst is then
// incomplete.
func (u *Unit) DecodeRange(ctx context.Context, elem, n int64, dst []byte) error {
	if elem < 0 || n < 0 || n > u.nElems-elem || int64(len(dst)) != 2*n {
		return fmt.Errorf("range of %d elements at %d into %d bytes, in a unit of %d", n, elem, len(dst), u.nElems)
	}
	if n == 0 {
		return nil
	}
	ranges := cut(u.chunkAt(elem), u.chunkAt(elem+n-1)+1)
	return eachBlock(ctx, ranges, 1, func(b *block, r chunkRange) error {
		if err := u.decodeBlock(b, r); err != nil {
			return err
		}
		copyOverlap(dst, 2*elem, b.bf16, 2*int64(u.positions[r.first]))
		return nil
	})
}

// copyOverlap copies the bytes that src, which lies at srcAt, and dst, at dstAt, have in common.
func copyOverlap(dst []byte, dstAt int64, src []byte, srcAt int64) {
	if srcAt < dstAt {
		src, srcAt = src[dstAt-srcAt:], dstAt
	}
	copy(dst[srcAt-dstAt:], src)
}

// decodeBlock loads a range and turns it into weights.
func (u *Unit) decodeBlock(b *block, r chunkRange) error {
	if err := u.load(b, r, nil); err != nil {
		return err
	}
	v := fastest()
	return u.eachChunk(v, b, nil, func(c *codes, d *chunkData) bool {
		v.join(d.bf16, c.exponents[:d.n], d.sm)
		return true
	})
}
