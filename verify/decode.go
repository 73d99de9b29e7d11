package verify

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
)

// DecodeRange decodes elements elem to elem+n-1 into dst, 2n bytes, as little-endian BF16. It reads
// only the chunks that hold them. As in [Unit.Compare], gaps or positions that contradict the codes
// are an error, and dst is then incomplete.
func (u *Unit) DecodeRange(ctx context.Context, elem, n int64, dst []byte) error {
	if err := u.checkRange(elem, n); err != nil {
		return err
	}
	if int64(len(dst)) != 2*n {
		return fmt.Errorf("range of %d elements into %d bytes", n, len(dst))
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

// checkRange refuses elements that the unit doesn't have.
func (u *Unit) checkRange(elem, n int64) error {
	if elem < 0 || n < 0 || n > u.NElems()-elem {
		return fmt.Errorf("range of %d elements at %d, in a unit of %d", n, elem, u.NElems())
	}
	return nil
}

// blockElems is how many weights a worker of WriteRange decodes at a time.
const blockElems = 1 << 18

// WriteRange decodes elements elem to elem+n-1 and writes them to w in order, as little-endian BF16.
// Each worker decodes a block of 2^18 elements, while the blocks before them are written: it takes a
// mebibyte for each worker. The errors are those of [Unit.DecodeRange] and of w, and
// io.ErrShortWrite if w takes less than it's given.
func (u *Unit) WriteRange(ctx context.Context, w io.Writer, elem, n int64, workers int) error {
	if err := u.checkRange(elem, n); err != nil {
		return err
	}
	if w == nil {
		return errors.New("write a range: there is no writer")
	}
	bufs := make([][2][]byte, max(1, min(int64(workers), (n+blockElems-1)/blockElems)))
	for i := range bufs {
		for j := range bufs[i] {
			bufs[i][j] = make([]byte, 2*max(0, min(blockElems, n)))
		}
	}
	var ready [][]byte
	for done, round := int64(0), 0; done < n || len(ready) > 0; round++ {
		g, gctx := errgroup.WithContext(ctx)
		g.Go(func() error {
			for _, b := range ready {
				switch got, err := w.Write(b); {
				case err != nil:
					return err
				case got < len(b):
					return io.ErrShortWrite
				}
			}
			return nil
		})
		var blocks [][]byte
		for i := 0; i < len(bufs) && done < n; i++ {
			m := min(blockElems, n-done)
			block, from := bufs[i][round%2][:2*m], elem+done
			g.Go(func() error { return u.DecodeRange(gctx, from, m, block) })
			blocks = append(blocks, block)
			done += m
		}
		if err := g.Wait(); err != nil {
			return err
		}
		ready = blocks
	}
	return nil
}

// copyOverlap copies src to byte at of dst. The part of src before or after dst is left out.
func copyOverlap(dst, src []byte, at int64) {
	if at < 0 {
		src, at = src[-at:], 0
	}
	copy(dst[at:], src)
}
