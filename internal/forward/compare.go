package forward

import (
	"cmp"
	"context"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// orChanged is a fault of a task, unless its source files were written to: then any fault is due to
// that.
func (m *maker) orChanged(t *fetch.Task, fault error) error {
	return cmp.Or(t.Unchanged(m.Source), fault)
}

// compared is a draft that was found to hold what its source does. Only the compare stage makes
// one.
type compared struct{ *draft }

// compareAll compares output files with their spools, from the bytes as stored, while the next one
// is encoded, and gives back the spools. The hash of a file is made meanwhile; it is thrown away if
// the file is wrong. One goroutine runs it.
func (m *maker) compareAll(ctx context.Context, drafts <-chan *draft, equal chan<- compared) error {
	for d := range drafts {
		d.startHash(ctx, m.Progress)
		err := m.compare(ctx, d)
		if err == nil {
			err = d.task.Spool.Release()
			d.task.Spool = nil
		}
		if err != nil {
			err = fmt.Errorf("compare %s: %w", d.task.Path, m.orChanged(d.task, err))
		} else {
			err = streams.Send(ctx, equal, compared{d})
		}
		if err != nil {
			d.discard()
			return err
		}
	}
	return nil
}

// compare compares a file with its source, then reads the header back.
func (m *maker) compare(ctx context.Context, d *draft) error {
	var err error
	if d.verified, err = m.comparer.Output(ctx, d.task.Output, d, d.task.Spool); err != nil {
		return err
	}
	return checkHeader(d.task.Output, d.file, d.header)
}
