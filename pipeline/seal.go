package pipeline

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/sha256pair"
)

// sealLoop gives verified files their sha256 and their name, and writes them into the journal. One file gets its name,
// which means waiting for the disk, while the next ones are hashed. lull offers tokens while no file is being made.
func (r *run) sealLoop(ctx context.Context, made <-chan *built, lull <-chan struct{}, sealed chan<- Output) error {
	g, ctx := errgroup.WithContext(ctx)
	hashed := make(chan hashed)
	g.Go(func() error {
		defer close(hashed)
		h := &hasher{made: made, lull: lull, hashed: hashed, progress: r.Progress}
		return h.run(ctx)
	})
	g.Go(func() error {
		for x := range hashed {
			o, err := r.seal(x)
			if err != nil {
				return fmt.Errorf("output %s: %w", x.task.path, err)
			}
			select {
			case sealed <- o:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return g.Wait()
}

// pairing gives the hasher the converter's lull. Where files go once they are uploaded, the converter may wait for the room
// of one that waits in the hasher, so that none may wait there.
func (r *run) pairing(lull <-chan struct{}) <-chan struct{} {
	if r.store.keep {
		return lull
	}
	always := make(chan struct{})
	close(always)
	return always
}

// hashed is an output file that only lacks its name.
type hashed struct {
	*built
	sum string
}

// seal puts a file in its place.
func (r *run) seal(x hashed) (Output, error) {
	defer x.file.Cleanup()
	if err := x.file.Commit(x.size); err != nil {
		return Output{}, err
	}
	o := Output{Path: x.task.path, Size: x.size, SHA256: x.sum, Units: x.result, Prefixes: x.task.prefixes}
	r.ledger.add(o)
	r.Progress.Outputs.Add(1)
	r.Progress.OutputBytes.Add(o.Size)
	r.Log.Info("output finished", "file", o.Path, "bytes", o.Size)
	return o, r.saveJournal()
}

// A hasher takes files two at a time, since two take one core hardly longer than one. So it waits for a second file
// while the converter is at work on one.
type hasher struct {
	made     <-chan *built
	lull     <-chan struct{}
	hashed   chan<- hashed
	progress *Progress

	open  []*built          // not handed on
	timed func(bytes int64) // ends a stretch of work
}

func (h *hasher) run(ctx context.Context) error {
	h.timed = h.progress.timed(StageHash)
	err := sha256pair.SumStreams(ctx, func(ctx context.Context, other bool) (*sha256pair.Stream, error) {
		h.timed(0)
		b, err := h.next(ctx, other)
		h.timed = h.progress.timed(StageHash)
		if b == nil || err != nil {
			return nil, err
		}
		h.open = append(h.open, b)
		return &sha256pair.Stream{R: b.file, Size: b.size, Done: func(sum []byte) error { return h.done(ctx, b, sum) }}, nil
	})
	for _, b := range h.open {
		b.file.Cleanup()
	}
	if err != nil {
		return fmt.Errorf("hash outputs: %w", err)
	}
	return nil
}

// next waits for a file. If another one is being hashed it waits only while the next one is being made: a nil file then
// lets the other go on alone.
func (h *hasher) next(ctx context.Context, other bool) (*built, error) {
	lull := h.lull
	if !other {
		lull = nil
	}
	select {
	case b := <-h.made:
		return b, nil
	case <-lull:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *hasher) done(ctx context.Context, b *built, sum []byte) error {
	h.timed(b.size)
	defer func() { h.timed = h.progress.timed(StageHash) }() // waiting for the disk does not count
	select {
	case h.hashed <- hashed{b, hex.EncodeToString(sum)}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	h.open = slices.DeleteFunc(h.open, func(o *built) bool { return o == b })
	return nil
}
