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
	v, ranges := fastest(), cut(u.chunkAt(elem), u.chunkAt(elem+n-1)+1)
	return u.eachChunk(ctx, v, ranges, 1, nil, func(c *codes, d *chunkData) bool {
		v.join(d.bf16, c.exponents[:d.n], d.sm)
		copyOverlap(dst, 2*elem, d.bf16, 2*int64(u.positions[d.index]))
		return true
	})
}

// copyOverlap copies the bytes that src, which lies at srcAt, and dst, at dstAt, have in common.
func copyOverlap(dst []byte, dstAt int64, src []byte, srcAt int64) {
	if srcAt < dstAt {
		src, srcAt = src[dstAt-srcAt:], dstAt
	}
	copy(dst[srcAt-dstAt:], src)
}
