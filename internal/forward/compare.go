package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// orChanged is a fault of a task, unless its source files were written to: then any fault is due to
// that.
func (w *Work) orChanged(t *fetch.Task, fault error) error {
	return cmp.Or(t.Unchanged(w.Fetcher.Source), fault)
}

// compared is a draft that was found to hold what its source does. Only the compare stage makes
// one.
type compared struct{ *draft }

// compareAll compares output files with their spools, from the bytes as stored, while the next one
// is encoded, and gives back the spools. The hash of a file is made meanwhile; it is thrown away if
// the file is wrong. One goroutine runs it.
func (w *Work) compareAll(ctx context.Context, drafts <-chan *draft, equal chan<- compared) error {
	for d := range drafts {
		d.startHash(ctx, w.Fetcher.Progress)
		err := w.compare(ctx, d)
		if err == nil {
			err = d.task.Spool.Release()
			d.task.Spool = nil
		}
		if err != nil {
			err = fmt.Errorf("compare %s: %w", d.task.Path, w.orChanged(d.task, err))
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
func (w *Work) compare(ctx context.Context, d *draft) error {
	gpu, err := w.Comparer.Output(ctx, d.task.Output, d, d.task.Spool)
	if err != nil {
		return err
	}
	for i := range d.units {
		d.units[i].GPU = gpu[i]
	}
	return checkHeader(d.task.Output, d.file, d.header)
}

// compareStored compares one output after the other that is stored already.
func (w *Work) compareStored(ctx context.Context, complete <-chan *fetch.Task) error {
	for t := range complete {
		gpu, err := w.Comparer.Output(ctx, t.Output, w.Stored, t.Spool)
		if err := errors.Join(err, t.Spool.Release()); err != nil {
			return err
		}
		if err := t.Unchanged(w.Fetcher.Source); err != nil {
			return err
		}
		w.Equal = append(w.Equal, t.Output)
		for _, compared := range gpu {
			if compared {
				w.GPUUnits++
			}
		}
		w.Fetcher.Progress.Outputs.Add(1)
	}
	return nil
}
