package model

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// TestASampleTellsModelsApart checks that a changed byte in any piece changes the sample, and that
// the pieces of a small file cover it.
func TestASampleTellsModelsApart(t *testing.T) {
	for _, size := range []int{1, 100, sampleBytes*samplePieces - 1, 3 * sampleBytes * samplePieces} {
		file, seen := make([]byte, size), map[string]bool{}
		for at := 0; at < size; at += max(1, size/samplePieces) {
			file[at] = 1
			s, err := sample(bytes.NewReader(file), int64(size))
			if err != nil || seen[s] {
				t.Fatalf("byte %d of %d: %v, seen before: %v", at, size, err, seen[s])
			}
			seen[s] = true
		}
		if _, err := sample(bytes.NewReader(file), int64(size)+1); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, one more expected: %v", size, err)
		}
	}
}
