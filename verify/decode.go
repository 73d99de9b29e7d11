package verify

import (
	"context"
	"fmt"
	"io"
)

// Decode writes the unit's 2N bytes of little-endian BF16 weights to dst, concurrently, with workers as in [CompareOptions].
// As in [Unit.Compare], gaps or positions that disagree with the codes are an error; dst is then incomplete.
func (u *Unit) Decode(ctx context.Context, dst io.WriterAt, workers int) error {
	return u.eachBlock(ctx, u.all(), workers, func(b *block, r chunkRange) error {
		if err := u.decodeBlock(b, r); err != nil {
			return err
		}
		first, _ := u.span(r)
		if _, err := dst.WriteAt(b.bf16, 2*first); err != nil {
			return fmt.Errorf("write weights at byte %d: %w", 2*first, err)
		}
		return nil
	})
}

// DecodeRange decodes elements elem to elem+n into dst, 2n bytes of the caller's. It reads only the chunks that hold them.
func (u *Unit) DecodeRange(ctx context.Context, elem, n int64, dst []byte) error {
	if elem < 0 || n < 0 || n > u.nElems-elem || int64(len(dst)) != 2*n {
		return fmt.Errorf("range of %d elements at %d into %d bytes, in a unit of %d", n, elem, len(dst), u.nElems)
	}
	if n == 0 {
		return nil
	}
	var chunks []chunkRange
	for c := u.chunkAt(elem); c < u.nChunks && int64(u.positions[c]) < elem+n; c++ {
		chunks = append(chunks, chunkRange{c, 1})
	}
	return u.eachBlock(ctx, chunks, 1, func(b *block, r chunkRange) error {
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
