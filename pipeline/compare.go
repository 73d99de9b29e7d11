package pipeline

import (
	"cmp"
	"context"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/compare"
	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// orChanged is a fault of a task, unless its source files were written to: then any fault is due to that.
func orChanged(t *fetch.Task, src model.Source, fault error) error {
	return cmp.Or(t.Unchanged(src), fault)
}

// A comparer compares output files with their spools, from the bytes as stored, while the next one is encoded. The hash of a
// file is made meanwhile; it is thrown away if the file is wrong. One goroutine runs it.
type comparer struct {
	compare.Comparer
	source model.Source
}

// run compares one file after the other and gives back the spool of each.
func (c *comparer) run(ctx context.Context, encoded <-chan *made, compared chan<- *made) error {
	for m := range encoded {
		m.sum = startHash(ctx, m, c.Progress)
		err := c.file(ctx, m)
		if err == nil {
			err = m.task.Spool.Release()
			m.task.Spool = nil
		}
		if err != nil {
			err = fmt.Errorf("compare %s: %w", m.task.Path, orChanged(m.task, c.source, err))
		} else {
			err = streams.Send(ctx, compared, m)
		}
		if err != nil {
			m.discard()
			return err
		}
	}
	return nil
}

// file compares a file with its source, then reads the header back.
func (c *comparer) file(ctx context.Context, m *made) error {
	gpu, err := c.Output(ctx, m.task.Output, m, m.task.Spool)
	if err != nil {
		return err
	}
	for i := range m.units {
		m.units[i].GPU = gpu[i]
	}
	return lintFile(m.task.Output, m.file, m.layout)
}
