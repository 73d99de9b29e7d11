package pipeline

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// hashing is the sha256 of a file under way, in a goroutine of its own. It ends early with the context that it was begun with.
type hashing struct {
	stop context.CancelFunc
	done chan struct{} // closed at the end; then hex and err may be read
	hex  string
	err  error
}

// startHash begins to hash a file as it is stored.
func startHash(ctx context.Context, m *made, p *progress.Counters) *hashing {
	ctx, stop := context.WithCancel(ctx)
	h := &hashing{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		done := p.Timed(progress.Hash)
		h.hex, h.err = streams.SHA256(ctx, io.NewSectionReader(m.file, 0, m.size))
		done(m.size)
	}()
	return h
}

// sum waits for the hash.
func (h *hashing) sum() (string, error) {
	<-h.done
	h.stop()
	if h.err != nil {
		return "", fmt.Errorf("hash output: %w", h.err)
	}
	return h.hex, nil
}

// A finalizer gives compared files their name, which means waiting for hashes and the disk, and records them in the ledger.
// Several goroutines run it.
type finalizer struct {
	source   model.Source
	ledger   *ledger.Ledger
	progress *progress.Counters
	log      *slog.Logger
}

func (f *finalizer) run(ctx context.Context, compared <-chan *made, finished chan<- ledger.Output) error {
	for m := range compared {
		o, err := f.name(m)
		if err != nil {
			return fmt.Errorf("output %s: %w", o.Path, err)
		}
		if err := streams.Send(ctx, finished, o); err != nil {
			return err
		}
	}
	return nil
}

// name forces a file to disk and gives it its name.
func (f *finalizer) name(m *made) (ledger.Output, error) {
	defer m.discard()
	o := ledger.Output{
		Path: m.task.Path, Size: m.size, Units: m.units, Place: ledger.Place{Here: true},
	}
	var err error
	if o.SHA256, err = m.sum.sum(); err != nil {
		return o, err
	}
	if err := m.task.Unchanged(f.source); err != nil {
		return o, err
	}
	if err := m.file.Commit(m.size); err != nil {
		return o, err
	}
	if err := f.ledger.Add(o); err != nil {
		return o, err
	}
	f.progress.Outputs.Add(1)
	f.progress.OutputBytes.Add(o.Size - progress.Guess(m.task.Size))
	f.log.Info("output finished", "file", o.Path, "bytes", o.Size)
	return o, nil
}
