package fetch

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/df11-convert/df11-convert/internal/exactf32"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
	"github.com/df11-convert/df11-convert/internal/streams"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// expected lists the sums of prefixes that finished outputs and kept tensors were made from, by the prefix's end. What
// passes there now must have the same.
func (f *Fetcher) expected(x stretch) map[int64][]string {
	sums := map[int64][]string{}
	if x.hash == nil {
		return sums
	}
	for _, t := range f.Tasks {
		var prefixes []ledger.Prefix
		if o, _ := f.Ledger.Output(t.Path); f.Ledger.Done(t.Path) {
			prefixes = o.Prefixes
		}
		for _, kept := range f.Ledger.Tensors(t.Path) {
			if kept.Prefix != nil {
				prefixes = append(slices.Clip(prefixes), *kept.Prefix)
			}
		}
		for _, p := range prefixes {
			if p.File == x.file.Path && p.End > x.from {
				sums[p.End] = append(sums[p.End], p.SHA256)
			}
		}
	}
	return sums
}

// scatterer gives the blocks of one file to the tasks that need them.
type scatterer struct {
	*Fetcher
	file     *File
	needs    func(spans.Delivery) bool
	hashed   bool
	expected map[int64][]string

	to      []spans.Delivery // who needs this segment
	crcs    []uint32         // of what each has of it so far
	inexact int64            // values of this segment that are narrowed and do not fit BF16; no other segment comes after some
	narrow  []byte           // the block in BF16
}

func (s *scatterer) scatter(ctx context.Context, b block) error {
	if !s.hashLater {
		s.Progress.Fetched.Add(int64(len(b.buf)))
	}
	end, err := s.checkPrefix(b)
	if err != nil {
		return err
	}
	if b.segment < 0 {
		return nil
	}
	seg := s.file.Segments[b.segment]
	if b.off == seg.Off {
		s.begin(seg)
	}
	if err := s.narrowBlock(b, seg); err != nil {
		return err
	}
	for i, d := range s.to {
		if err := s.deliver(ctx, i, d, b, seg); err != nil {
			return err
		}
	}
	if end < seg.End {
		return nil
	}
	return s.finish(ctx, b, end)
}

// checkPrefix compares the sum up to the end of a block with those that must pass there.
func (s *scatterer) checkPrefix(b block) (end int64, err error) {
	end = b.off + int64(len(b.buf))
	for _, want := range s.expected[end] {
		if b.prefix != "" && b.prefix != want {
			return end, &model.SourceError{File: s.file.Path, Want: want, Got: b.prefix, End: end}
		}
	}
	return end, nil
}

// bindLater binds the tasks that need a segment to the sum at its end, where their bytes go another way.
func (s *scatterer) bindLater(_ context.Context, b block) error {
	s.Progress.Fetched.Add(int64(len(b.buf)))
	end, err := s.checkPrefix(b)
	if err != nil || b.segment < 0 {
		return err
	}
	seg := s.file.Segments[b.segment]
	if b.off == seg.Off {
		s.begin(seg)
	}
	if end < seg.End {
		return nil
	}
	if err := s.keepState(b, end); err != nil {
		return err
	}
	for _, d := range s.to {
		t := s.byOutput[d.Output]
		t.bind(ledger.Prefix{File: s.file.Path, End: end, SHA256: b.prefix})
		if t.unhashed.Add(-d.SpoolBytes()) == 0 {
			close(t.hashed)
		}
	}
	return nil
}

// keepState notes that another run can go on behind a block, if it can.
func (s *scatterer) keepState(b block, end int64) error {
	if b.state == nil {
		return nil
	}
	return s.Ledger.AddCheckpoint(ledger.Checkpoint{File: s.file.Path, Offset: end, State: b.state})
}

// begin finds out who needs a segment. A stream never begins inside of one.
func (s *scatterer) begin(seg spans.Segment) {
	s.to = slices.DeleteFunc(slices.Clone(seg.To), func(d spans.Delivery) bool { return !s.needs(d) })
	s.crcs = make([]uint32, len(s.to))
}

// narrowBlock makes BF16 of a block if somebody needs it so. A segment that does not fit BF16 is refused before its last
// block is delivered, so that no task is ever complete with it.
func (s *scatterer) narrowBlock(b block, seg spans.Segment) error {
	i := slices.IndexFunc(s.to, func(d spans.Delivery) bool { return d.ExactF32 })
	if i < 0 {
		return nil
	}
	var inexact int64
	s.narrow, inexact = exactf32.Narrow(s.narrow, b.buf)
	if s.inexact += inexact; s.inexact > 0 && b.off+int64(len(b.buf)) == seg.End {
		return &exactf32.InexactError{File: s.file.Path, Tensor: s.to[i].Source, Values: s.inexact, Of: (seg.End - seg.Off) / 4, Scope: exactf32.ScopeTensor}
	}
	return nil
}

// deliver writes a block to one task's spool and counts its exponents.
func (s *scatterer) deliver(ctx context.Context, i int, d spans.Delivery, b block, seg spans.Segment) error {
	t := s.byOutput[d.Output]
	if err := s.open(ctx, t); err != nil {
		return err
	}
	p, at := b.buf, d.At+b.off-seg.Off
	if d.ExactF32 {
		p, at = s.narrow, d.At+(b.off-seg.Off)/2
	}
	if _, err := t.Spool.WriteAt(p, at); err != nil {
		return fmt.Errorf("write spool: %w", err)
	}
	t.add(d.Unit, at, p)
	if spool.IsKept(t.Spool) {
		s.crcs[i] = crc32.Update(s.crcs[i], castagnoli, p)
	}
	return nil
}

// finish records a segment that has arrived whole, and sends on the tasks that are complete with it.
func (s *scatterer) finish(ctx context.Context, b block, end int64) error {
	prefix := ledger.Prefix{File: s.file.Path, End: end, SHA256: b.prefix}
	var kept []ledger.Tensor
	for i, d := range s.to {
		t := s.byOutput[d.Output]
		if t.hashed == nil {
			t.bind(prefix)
		}
		if spool.IsKept(t.Spool) {
			x := ledger.Tensor{Output: t.Path, At: d.At, CRC: s.crcs[i]}
			if s.hashed {
				x.Prefix = &prefix
			}
			kept = append(kept, x)
		}
	}
	if err := s.Ledger.AddTensors(kept); err != nil {
		return err
	}
	if err := s.keepState(b, end); err != nil {
		return err
	}
	for _, d := range s.to {
		if err := s.arrived(ctx, s.byOutput[d.Output], d); err != nil {
			return err
		}
	}
	return nil
}

// arrived notes that a task has the bytes of a delivery, and sends the task on if it was the last one.
func (f *Fetcher) arrived(ctx context.Context, t *Task, d spans.Delivery) error {
	if t.left.Add(-d.SpoolBytes()) != 0 {
		return nil
	}
	return streams.Send(ctx, f.complete, t)
}
