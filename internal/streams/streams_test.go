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

// The end of a file becomes io.ErrUnexpectedEOF. An error that only wraps io.EOF, such as a closed
// connection, keeps its words.
func TestAReadThatFailsSaysWhy(t *testing.T) {
	if err := ReadFull(bytes.NewReader([]byte("abc")), make([]byte, 9), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	closed := fmt.Errorf("read model.safetensors of org/m: %w", io.EOF)
	if err := ReadFull(failing{closed}, make([]byte, 9), 0); err == nil || err.Error() != closed.Error() {
		t.Error(err)
	}
}
