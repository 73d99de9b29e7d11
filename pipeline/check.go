package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/proof"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// orChanged is a fault of a task, unless its source files were written to: then any fault is due to that.
func orChanged(t *fetch.Task, src model.Source, fault error) error {
	return cmp.Or(t.Unchanged(src), fault)
}

// A checker compares output files with their spools, from the bytes as stored, while the next one is encoded. The hash of a
// file is made meanwhile; it is thrown away if the file is wrong. One goroutine runs it.
type checker struct {
	source   model.Source
	check    proof.Checker
	progress *progress.Counters
}

// run checks one file after the other and gives back the spool of each.
func (c *checker) run(ctx context.Context, encoded <-chan *made, verified chan<- *made) error {
	for m := range encoded {
		m.sum = startHash(ctx, m, c.progress)
		err := c.file(ctx, m)
		if err == nil {
			err = m.task.Spool.Release()
			m.task.Spool = nil
		}
		if err != nil {
			err = fmt.Errorf("verify %s: %w", m.task.Path, orChanged(m.task, c.source, err))
		} else {
			err = streams.Send(ctx, verified, m)
		}
		if err != nil {
			m.discard()
			return err
		}
	}
	return nil
}

// file compares every weight of a file with its source, then reads the header back.
func (c *checker) file(ctx context.Context, m *made) error {
	for i, u := range m.task.Units {
		if err := c.unit(ctx, m, u, &m.units[i]); err != nil {
			return fmt.Errorf("module %s: %w", u.Path, err)
		}
	}
	for _, t := range m.task.Copied {
		if err := c.copied(ctx, m, t); err != nil {
			return err
		}
	}
	if err := proof.Aliases(ctx, m.task.Output, m.task.Spool); err != nil {
		return err
	}
	return lintFile(m.task.Output, m.file, m.layout)
}

// unit decodes a unit from the stored bytes, and compares all 16 bits of its weights, or those of the copy where it stays BF16.
func (c *checker) unit(ctx context.Context, m *made, u *spans.Unit, r *ledger.Unit) (err error) {
	if r.Status == metadata.BF16 {
		for t := range u.Tensors() {
			if err := c.copied(ctx, m, t); err != nil {
				return err
			}
		}
		return nil
	}
	stored := model.ArraysAt(func(name string) *io.SectionReader {
		t, _ := m.layout.Lookup(u.Path + "." + name) // a missing one is an empty section, which the check refuses
		return io.NewSectionReader(m.file, m.layout.DataStart()+t.Begin, t.NBytes())
	})
	r.GPU, err = c.check.Unit(ctx, u, stored, io.NewSectionReader(m.task.Spool, u.At, 2*u.NElems()))
	return err
}

// copied compares a copied tensor with its source.
func (c *checker) copied(ctx context.Context, m *made, t spans.Tensor) error {
	n, at := m.placeOf(t)
	diff, err := streams.FirstDifference(ctx, io.NewSectionReader(m.file, at, n), io.NewSectionReader(m.task.Spool, t.At, n), n)
	if err != nil {
		return fmt.Errorf("verify tensor %s: %w", t.Name, err)
	}
	if diff >= 0 {
		return fmt.Errorf("verify tensor %s: byte %d was not stored as it was read: bad disk or memory, or a bug", t.Name, diff)
	}
	c.progress.Verified.Add(n)
	return nil
}
