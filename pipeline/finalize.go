package pipeline

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/sha256pair"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// A finalizer gives verified files their sha256 and their name, and records them in the ledger.
type finalizer struct {
	ledger *ledger.Ledger
	// patient: a file waits for a second one to be hashed with. Where files go once they are uploaded, the converter may be
	// waiting for the room of the first one.
	patient  bool
	progress *progress.Counters
	log      *slog.Logger
}

// hashed is an output file that only lacks its name.
type hashed struct {
	*made
	sum string
}

// run hashes files, two side by side if two are there, while the ones before get their names, which means waiting for the
// disk.
func (f *finalizer) run(ctx context.Context, verified <-chan *made, finished chan<- ledger.Output) error {
	g, ctx := errgroup.WithContext(ctx)
	nameless := make(chan hashed)
	g.Go(func() error {
		defer close(nameless)
		return f.hash(ctx, verified, nameless)
	})
	g.Go(func() error {
		for h := range nameless {
			o, err := f.name(h)
			if err != nil {
				return fmt.Errorf("output %s: %w", o.Path, err)
			}
			if err := streams.Send(ctx, finished, o); err != nil {
				return err
			}
		}
		return nil
	})
	err := g.Wait()
	for m := range verified { // after an error nobody takes them
		m.file.Cleanup()
	}
	return err
}

func (f *finalizer) hash(ctx context.Context, verified <-chan *made, nameless chan<- hashed) error {
	for first := range verified {
		hs, err := f.sum(ctx, f.withSecond(first, verified))
		for _, h := range hs {
			if err == nil {
				err = streams.Send(ctx, nameless, h)
			}
			if err != nil {
				h.file.Cleanup()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withSecond adds a second file, if there is one.
func (f *finalizer) withSecond(first *made, verified <-chan *made) []*made {
	var second *made
	if f.patient {
		second = <-verified // nil once the channel is closed
	} else {
		select {
		case second = <-verified:
		default:
		}
	}
	if second == nil {
		return []*made{first}
	}
	return []*made{first, second}
}

// sum hashes one file, or two at once: two take one core hardly longer than one.
func (f *finalizer) sum(ctx context.Context, files []*made) ([]hashed, error) {
	done := f.progress.Timed(progress.Hash)
	var two [2]sha256pair.Stream
	var hs []hashed
	var nBytes int64
	for i, m := range files {
		two[i] = sha256pair.Stream{R: m.file, Size: m.size}
		hs = append(hs, hashed{made: m})
		nBytes += m.size
	}
	a, b, err := sha256pair.SumReaders(ctx, two[0], two[1])
	if err != nil {
		return hs, fmt.Errorf("hash outputs: %w", err)
	}
	done(nBytes)
	for i, sum := range [][]byte{a, b}[:len(hs)] {
		hs[i].sum = hex.EncodeToString(sum)
	}
	return hs, nil
}

// name forces a file to disk and gives it its name.
func (f *finalizer) name(h hashed) (ledger.Output, error) {
	defer h.file.Cleanup()
	o := ledger.Output{
		Path: h.task.Path, Size: h.size, SHA256: h.sum, Units: h.units, Prefixes: h.task.Prefixes(), Place: ledger.Place{Here: true},
	}
	if err := h.file.Commit(h.size); err != nil {
		return o, err
	}
	if err := f.ledger.Add(o); err != nil {
		return o, err
	}
	f.progress.Outputs.Add(1)
	f.progress.OutputBytes.Add(o.Size - progress.Guess(h.task.Size))
	f.log.Info("output finished", "file", o.Path, "bytes", o.Size)
	return o, nil
}
