package fetch

import (
	"context"
	"fmt"
	"hash/crc32"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Resume takes up the kept spool s of an earlier run, which holds the tensors that the ledger lists: it reads them, compares
// their checksums, and counts their exponents again. After an error s is the caller's, and the task
// begins anew.
func (t *Task) Resume(ctx context.Context, s spool.Spool, tensors []ledger.Tensor, files []*File) error {
	if err := t.count(); err != nil {
		return err
	}
	places := map[int64]spans.Delivery{}
	for x, u := range t.Tensors() {
		places[x.At] = spans.Delivery{Output: t.Output, Unit: u, Tensor: x}
	}
	found := make([]spans.Delivery, len(tensors))
	for i, x := range tensors {
		d, ok := places[x.At]
		if !ok {
			return fmt.Errorf("no tensor lies at %d, or one is listed twice", x.At)
		}
		delete(places, x.At)
		if err := t.recount(ctx, s, d, x.CRC); err != nil {
			return err
		}
		found[i] = d
	}
	t.held = map[int64]bool{}
	for i, x := range tensors {
		d := found[i]
		t.held[x.At] = true
		t.left.Add(-d.SpoolBytes())
		if x.Prefix != nil {
			t.bind(*x.Prefix)
		} else {
			t.bind(ledger.Prefix{File: files[d.File].Path})
		}
	}
	t.open.Do(func() {}) // it is open now
	t.Spool = s
	return nil
}

// recount reads one tensor of a kept spool.
func (t *Task) recount(ctx context.Context, s spool.Spool, d spans.Delivery, want uint32) error {
	size, sum := d.SpoolBytes(), uint32(0)
	buf := streams.GetBlock()
	defer streams.PutBlock(buf)
	for done := int64(0); done < size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p := buf[:min(int64(len(buf)), size-done)]
		if err := streams.ReadFull(s, p, d.At+done); err != nil {
			return fmt.Errorf("read at %d: %w", d.At+done, err)
		}
		sum = crc32.Update(sum, castagnoli, p)
		t.add(d.Unit, d.At+done, p)
		done += int64(len(p))
	}
	if sum != want {
		return fmt.Errorf("tensor %s at %d is not as it was written", d.Source, d.At)
	}
	return nil
}

// Arrived counts the bytes that are in the spool.
func (t *Task) Arrived() int64 { return t.Size - t.left.Load() }
