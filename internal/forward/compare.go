package forward

import (
	"cmp"
	"context"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// orChanged returns fault, unless the task's source files were written to. Then any fault comes
// from that, and orChanged reports it instead.
func (m *maker) orChanged(t *fetch.Task, fault error) error {
	return cmp.Or(t.Unchanged(m.Source), fault)
}

// compared is a draft that holds what its source does. Only the compare stage makes one.
type compared struct{ *draft }

// compareAll compares output files, as stored, with their spools while the next file is encoded, and
// releases the spools. It starts each file's hash at the same time, and discards the hash of a wrong
// file. One goroutine runs compareAll.
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

// compare compares a file with its source, then reads the file's header back.
func (m *maker) compare(ctx context.Context, d *draft) error {
	var err error
	if d.verified, err = m.comparer.Output(ctx, d.task.Output, d, d.task.Spool); err != nil {
		return err
	}
	return checkHeader(d.task.Output, d.file, d.header)
}
