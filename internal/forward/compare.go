package forward

import (
	"cmp"
	"context"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/forward/compare"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// failed returns the fault of a stage, if there is one. If the task's source files were written to,
// any fault comes from that, and failed reports it instead.
func (m *maker) failed(stage string, t *fetch.Task, fault error) error {
	if fault == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", stage, t.Path, cmp.Or(t.Unchanged(m.Source), fault))
}

// compared is a draft that holds what its source does. Only the compare stage makes one.
type compared struct{ *draft }

// compare compares an output file, as stored, with its spool while the next file is encoded. It
// starts the file's hash at the same time, and discards a wrong file. It releases a spool
// that no other run could use.
func (m *maker) compare(ctx context.Context, d *draft) (compared, error) {
	d.startHash(ctx, m.Progress)
	err := m.equal(ctx, d)
	if err == nil && !d.task.Spool.Kept { // a kept one is needed until the output has its name
		err = d.task.Spool.Release()
		d.task.Spool = nil
	}
	if err != nil {
		d.discard()
		return compared{}, m.failed("compare", d.task, err)
	}
	return compared{d}, nil
}

// equal compares a file with its source, then reads the file's header back.
func (m *maker) equal(ctx context.Context, d *draft) (err error) {
	if d.verified, err = output(ctx, m.comparer, m.fetcher, d.task, d); err != nil {
		return err
	}
	return checkHeader(m.Log, d.task.Output, d.file, d.header)
}

// output compares an output, as stored, with its source, and what it read of that with what was
// hashed. It returns what it verified.
func output(ctx context.Context, c *compare.Comparer, f *fetch.Fetcher, t *fetch.Task,
	stored compare.Stored) ([]metadata.Verification, error) {
	source := f.Compared(t)
	verified, err := c.Output(ctx, t.Output, stored, source, t.Spool)
	if err != nil {
		return nil, err
	}
	return verified, source.Unchanged()
}
