package fetch

import (
	"context"
	"fmt"
	"hash/crc32"

	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Resume takes over the kept spool s of an earlier run. For each tensor that the ledger lists, it
// reads the bytes, compares the checksum, and counts the exponents again. After an error, s belongs
// to the caller again, and the task starts over.
func (t *Task) Resume(ctx context.Context, s *spool.Spool, tensors []ledger.Tensor) error {
	if err := t.count(); err != nil {
		return err
	}
	crcs := map[int64]uint32{}
	for _, x := range tensors {
		crcs[x.At] = x.CRC
	}
	var found []spans.Tensor
	for x, u := range t.Tensors() {
		crc, listed := crcs[x.At]
		if !listed || x.Length == 0 {
			continue
		}
		if err := t.recount(ctx, s, u, x, crc); err != nil {
			return err
		}
		found = append(found, x)
	}
	if len(found) < len(tensors) {
		return fmt.Errorf("%d tensors are listed, but the plan has only %d of them", len(tensors),
			len(found))
	}
	for _, x := range found {
		t.hold(x)
	}
	t.open.Do(func() {}) // it is open now
	t.Spool = s
	return nil
}

// recount reads one tensor of a kept spool.
func (t *Task) recount(ctx context.Context, s *spool.Spool, u *spans.Unit, x spans.Tensor,
	want uint32) error {
	size, sum := x.SpoolBytes(), uint32(0)
	buf := streams.GetBlock()
	defer streams.PutBlock(buf)
	for done := int64(0); done < size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p := buf[:min(int64(len(buf)), size-done)]
		if err := streams.ReadFull(s, p, x.At+done); err != nil {
			return fmt.Errorf("read at %d: %w", x.At+done, err)
		}
		sum = crc32.Update(sum, castagnoli, p)
		t.add(u, x.At+done, p)
		done += int64(len(p))
	}
	if sum != want {
		return fmt.Errorf("tensor %s at %d is not what was written", x.Source, x.At)
	}
	return nil
}

// Arrived returns how many bytes are in the spool.
func (t *Task) Arrived() int64 { return t.Size - t.left.Load() }
