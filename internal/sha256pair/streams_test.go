package sha256pair

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"testing"
)

// TestSumReaders hashes two streams of all sizes, and ends with a stream that is short, or with its context.
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
