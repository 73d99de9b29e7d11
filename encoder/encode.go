package encoder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Encode is pass 2. It reads the unit's 2N bytes from src, which must equal the bytes of pass 1,
// and writes the six tensors. It encodes up to workers blocks at a time; the number doesn't change
// the output. If a chunk has more weights than the GPU's shared memory holds, Encode returns an
// [*UnsupportedError] after it has written all bytes; discard them. Keep source and writers open
// until Encode returns. No goroutine outlives it.
func (u *Unit) Encode(ctx context.Context, src io.ReaderAt, dst Dst, workers int) error {
	if u == nil || u.book == nil || src == nil || dst == nil {
		return errors.New("encode: a unit of Counter.Finish, a source, and writers are needed")
	}
	positions := slices.Repeat([]uint32{uint32(u.nElems)}, u.nMarked+1)
	c := &unitCoder{u: u, src: src, dst: dst, table: newPairTable(u.book), positions: positions}
	defer freeTables.Put(c.table)
	if err := c.blocks(ctx, workers); err != nil {
		return err
	}
	if err := u.writeSmall(positions, dst); err != nil {
		return err
	}
	return u.checkShared(positions)
}

// blocks codes all blocks. Each worker is one goroutine, because a goroutine per block would have to
// grow its stack for every block.
func (u *unitCoder) blocks(ctx context.Context, workers int) error {
	group, running := errgroup.WithContext(ctx) // the first error ends it
	var begun atomic.Int64
	for range max(min(workers, len(u.u.offset)-1), 1) {
		group.Go(func() (err error) {
			for err == nil && running.Err() == nil {
				b := int(begun.Add(1)) - 1
				if b >= len(u.u.offset)-1 {
					return nil
				}
				err = u.block(b)
			}
			return err
		})
	}
	return cmp.Or(group.Wait(), context.Cause(ctx))
}

// writeSmall writes the tensors that are already in memory.
func (u *Unit) writeSmall(positions []uint32, dst Dst) error {
	return cmp.Or(
		dst.write(NameLUTs, u.rows, 0),
		dst.write(NameOutputPositions, littleEndian(positions), 0),
		dst.write(NameSplitPositions, littleEndian(u.splitPositions()), 0))
}

// checkShared applies the kernel's shared memory limit to the actual positions (docs/format.md
// §9.3).
func (u *Unit) checkShared(positions []uint32) error {
	var most uint32
	for i := 1; i < len(positions); i++ {
		most = max(most, positions[i]-positions[i-1])
	}
	if most > maxPerChunk {
		return &UnsupportedError{ReasonSharedMemory,
			fmt.Sprintf("%d weights in a chunk, the limit is %d", most, maxPerChunk)}
	}
	return nil
}
