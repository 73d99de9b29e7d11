package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// failing is a source with one file: three bytes, then an error.
type failing struct {
	Source
	end error
}

func (s failing) Stream(context.Context, int, int64, int64) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(s.end))), nil
}

// TestASourceThatFailsIsNamedOnce checks that the error names the file once, whether or not the
// source does, and says why reading ended.
func TestASourceThatFailsIsNamedOnce(t *testing.T) {
	const name = "model.safetensors"
	early := "source file " + name + " ends after 3 of 9 bytes: unexpected EOF"
	disk := &fs.PathError{Op: "read", Path: "/models/" + name, Err: syscall.EIO}
	file := File{WeightFile: plan.WeightFile{File: plan.File{Path: name, Size: 9}, Header: new(safetensors.Header)}}
	// as from a Hub that closes every connection
	closed := fmt.Errorf("read %s of org/m: %w", name, io.EOF)
	for end, want := range map[error]string{
		io.EOF: early, io.ErrUnexpectedEOF: early, closed: closed.Error(), error(disk): disk.Error(),
	} {
		_, err := SumWeights(t.Context(), failing{end: end}, file)
		if e := (*ReadError)(nil); !errors.As(err, &e) || e.File != name || err.Error() != want {
			t.Errorf("%v: the error is %v", end, err)
		}
	}
}

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
