package streams

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
)

type failing struct{ error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.error }

// TestAReadThatFailsSaysWhy: the end of a file is told as one that comes too early; an error that
// only wraps it, such as that of a connection which was closed, keeps its words.
func TestAReadThatFailsSaysWhy(t *testing.T) {
	if err := ReadFull(bytes.NewReader([]byte("abc")), make([]byte, 9), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	closed := fmt.Errorf("read model.safetensors of org/m: %w", io.EOF)
	if err := ReadFull(failing{closed}, make([]byte, 9), 0); err == nil || err.Error() != closed.Error() {
		t.Error(err)
	}
}
