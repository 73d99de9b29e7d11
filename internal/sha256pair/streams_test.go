package sha256pair

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// TestSumStreams hashes streams of all sizes; next lets the other one go alone now and then.
func TestSumStreams(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for _, reluctant := range []float64{0, 0.5, 1} {
		given, done := 0, 0
		next := func(_ context.Context, other bool) (*Stream, error) {
			if given == 40 || other && rng.Float64() < reluctant {
				return nil, nil
			}
			n := rng.IntN(1 << rng.IntN(22))
			if given < 4 {
				n = given % 3 * pieceBytes
			}
			b := data(uint64(given), n)
			given++
			return &Stream{R: bytes.NewReader(b), Size: int64(n), Done: func(sum []byte) error {
				done++
				if want := sha256.Sum256(b); !bytes.Equal(sum, want[:]) {
					t.Errorf("%d bytes: wrong sum", n)
				}
				return nil
			}}, nil
		}
		if err := SumStreams(t.Context(), next); err != nil || done != 40 {
			t.Errorf("%d streams are done: %v", done, err)
		}
	}
}

func TestSumStreamsErrors(t *testing.T) {
	broken := errors.New("broken")
	ok := func([]byte) error { return nil }
	for name, c := range map[string]struct {
		s    *Stream
		err  error // of next
		want error
	}{
		"next":  {nil, broken, broken},
		"short": {&Stream{R: bytes.NewReader(make([]byte, 9)), Size: 10, Done: ok}, nil, io.ErrUnexpectedEOF},
		"done":  {&Stream{R: bytes.NewReader(nil), Done: func([]byte) error { return broken }}, nil, broken},
	} {
		first := &Stream{R: bytes.NewReader(make([]byte, 1<<20)), Size: 1 << 20, Done: ok}
		err := SumStreams(t.Context(), func(_ context.Context, other bool) (*Stream, error) {
			if !other {
				return first, nil
			}
			return c.s, c.err
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSumStreamsCancel ends in the middle of a stream.
func TestSumStreamsCancel(t *testing.T) {
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	endless := &Stream{R: zeros{}, Size: 1 << 60}
	asked := 0
	err := SumStreams(ctx, func(_ context.Context, other bool) (*Stream, error) {
		if !other {
			return endless, nil
		}
		if asked++; asked == 3 {
			cancel(stop)
		}
		return nil, nil
	})
	if !errors.Is(err, stop) || endless.off > 3*pieceBytes {
		t.Errorf("at %d: %v", endless.off, err)
	}
}

type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

func TestSumReaders(t *testing.T) {
	sizes := []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 3*pieceBytes + 7}
	for _, n := range sizes {
		for _, m := range sizes {
			p, q := data(uint64(n), n), data(uint64(m)+1, m)
			a, b := Stream{R: bytes.NewReader(p), Size: int64(n)}, Stream{R: bytes.NewReader(q), Size: int64(m)}
			if m == 0 {
				b = Stream{}
			}
			sumA, sumB, err := SumReaders(t.Context(), a, b)
			wantA, wantB := sha256.Sum256(p), sha256.Sum256(q)
			if err != nil || !bytes.Equal(sumA, wantA[:]) || !bytes.Equal(sumB, wantB[:]) {
				t.Errorf("%d and %d bytes: wrong sum, error %v", n, m, err)
			}
		}
	}
	short := Stream{R: bytes.NewReader(make([]byte, 9)), Size: 10}
	if _, _, err := SumReaders(t.Context(), Stream{}, short); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short stream: %v", err)
	}
	stopped := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(stopped)
	if _, _, err := SumReaders(ctx, short, short); !errors.Is(err, stopped) {
		t.Errorf("canceled: %v", err)
	}
}
