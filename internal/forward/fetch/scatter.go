package fetch

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// scatterer passes the blocks of one file to the tasks that need them.
type scatterer struct {
	*Fetcher
	file *sourceFile

	to   []spans.Delivery // deliveries that need this segment
	crcs []uint32         // checksum of what each delivery has so far
	// values so far that BF16 can't hold; the first tensor with such a value ends the run
	inexact int64
	narrow  []byte // the block in BF16
}

func (s *scatterer) scatter(ctx context.Context, b block) error {
	if b.segment < 0 {
		return nil
	}
	seg := s.file.segments[b.segment]
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
	if b.off+int64(len(b.buf)) < seg.End {
		return nil
	}
	return s.finish(ctx)
}

// begin finds the deliveries that need a segment. A stream never begins inside a segment.
func (s *scatterer) begin(seg spans.Segment) {
	s.to = slices.DeleteFunc(slices.Clone(seg.To),
		func(d spans.Delivery) bool { return !s.needs(d) })
	s.crcs = make([]uint32, len(s.to))
}

// narrowBlock converts a block to BF16 if a delivery needs that. If a segment doesn't fit BF16,
// narrowBlock refuses it before its last block is delivered, so no task is ever complete with it.
func (s *scatterer) narrowBlock(b block, seg spans.Segment) error {
	i := slices.IndexFunc(s.to, func(d spans.Delivery) bool { return d.ExactF32 })
	if i < 0 {
		return nil
	}
	var inexact int64
	s.narrow, inexact = spans.Narrow(s.narrow, b.buf)
	if s.inexact += inexact; s.inexact > 0 && b.off+int64(len(b.buf)) == seg.End {
		return &spans.InexactError{File: s.file.Path, Tensor: s.to[i].Source, Values: s.inexact,
			Of: (seg.End - seg.Off) / 4}
	}
	return nil
}

// deliver writes a block to one task's spool and counts its exponents.
func (s *scatterer) deliver(ctx context.Context, i int, d spans.Delivery, b block,
	seg spans.Segment) error {
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
	if t.Spool.Kept {
		s.crcs[i] = crc32.Update(s.crcs[i], castagnoli, p)
	}
	return nil
}

// finish records a segment that has arrived in full, and sends the tasks that it completes.
func (s *scatterer) finish(ctx context.Context) error {
	var kept []ledger.Tensor
	for i, d := range s.to {
		if t := s.byOutput[d.Output]; t.Spool.Kept {
			kept = append(kept, ledger.Tensor{Output: t.Path, At: d.At, CRC: s.crcs[i]})
		}
	}
	if err := s.Ledger.AddTensors(kept); err != nil {
		return err
	}
	for _, d := range s.to {
		t := s.byOutput[d.Output]
		if t.left.Add(-d.SpoolBytes()) != 0 {
			continue
		}
		if err := streams.Send(ctx, s.complete, t); err != nil {
			return err
		}
	}
	return nil
}
