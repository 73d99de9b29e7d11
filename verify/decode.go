package verify

import (
	"context"
	"fmt"
)

// DecodeRange decodes elements elem to elem+n-1 into dst, 2n bytes, as little-endian BF16. It reads
// only the chunks that hold them. As in [Unit.Compare], gaps or positions that contradict the codes
// are an error, and dst is then incomplete.
func (u *Unit) DecodeRange(ctx context.Context, elem, n int64, dst []byte) error {
	if elem < 0 || n < 0 || n > u.nElems-elem || int64(len(dst)) != 2*n {
		return fmt.Errorf("range of %d elements at %d into %d bytes, in a unit of %d", n, elem,
			len(dst), u.nElems)
	}
	if n == 0 {
		return nil
	}
	v, ranges := fastest(), cut(u.chunkAt(elem), u.chunkAt(elem+n-1)+1)
	return u.eachChunk(ctx, v, ranges, 1, nil, func(c *codes, d *chunkData) error {
		v.join(d.bf16, c.exponents[:d.n], d.sm)
		copyOverlap(dst, d.bf16, 2*(int64(u.positions[d.index])-elem))
		return nil
	})
}

// copyOverlap copies src to byte at of dst. The part of src before or after dst is left out.
func copyOverlap(dst, src []byte, at int64) {
	if at < 0 {
		src, at = src[-at:], 0
	}
	copy(dst[at:], src)
}
