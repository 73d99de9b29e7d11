package streams_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/df11-convert/df11-convert/internal/streams"
)

// The first byte that differs is found at its offset, in any block.
func TestFirstDifference(t *testing.T) {
	const size = 2*streams.BlockBytes + 5
	for _, want := range []int64{-1, 0, 1, streams.BlockBytes - 1, streams.BlockBytes, streams.BlockBytes + 3, size - 1} {
		a, b := make([]byte, size), make([]byte, size)
		if want >= 0 {
			b[want], b[size-1] = 1, 1
		}
		got, err := streams.FirstDifference(t.Context(), bytes.NewReader(a), bytes.NewReader(b), size)
		if got != want || err != nil {
			t.Errorf("%d, want %d (%v)", got, want, err)
		}
	}
}

// A source that ends too early is an error, not a shorter tensor.
func TestShortSourceIsAnError(t *testing.T) {
	a, b := bytes.NewReader(make([]byte, 9)), bytes.NewReader(make([]byte, 10))
	_, err := streams.FirstDifference(t.Context(), a, b, 10)
	for _, err := range []error{err, streams.ReadFull(a, make([]byte, 10), 0), streams.ReadFull(a, make([]byte, 1), 9)} {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
	}
}

// When a context ends, the transfer ends with the context's cause.
func TestEndedContextEndsATransfer(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	source := bytes.NewReader(make([]byte, 10))
	_, hash := streams.SHA256(ctx, source)
	_, difference := streams.FirstDifference(ctx, source, source, 10)
	for _, err := range []error{hash, difference, streams.Send(ctx, make(chan int), 1)} {
		if !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	}
}
