package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/df11-convert/df11-convert/internal/usage"
)

// TooLargeError reports that something is larger than it can rightly be.
type TooLargeError struct {
	Path  string // "" if it isn't a file
	Limit int64  // bytes
}

func (e *TooLargeError) Error() string {
	s := fmt.Sprintf("more than %d bytes", e.Limit)
	if e.Path != "" {
		s = fmt.Sprintf("%q: %s", e.Path, s)
	}
	return s
}

// Read returns the content of a regular file of at most limit bytes. Other files, such as devices
// and pipes, could be endless, so Read refuses them without opening them.
func Read(path string, limit int64) ([]byte, error) {
	return read(Open, path, limit)
}

// ReadInput is Read for a file that the user names: if there's none, that's the user's mistake. It
// also accepts a pipe, because a shell passes the output of a command as one. It waits for the
// pipe's writer until ctx ends, and then returns ctx's cause.
func ReadInput(ctx context.Context, path string, limit int64) ([]byte, error) {
	b, err := await(ctx, func() ([]byte, error) { return read(os.Open, path, limit) })
	if errors.Is(err, fs.ErrNotExist) {
		err = usage.Of(err)
	}
	return b, err
}

// ReadStdin reads standard input, at most limit bytes, in the way of [ReadInput].
func ReadStdin(ctx context.Context, limit int64) ([]byte, error) {
	return await(ctx, func() ([]byte, error) { return ReadAll(os.Stdin, limit) })
}

// await returns what read does, or ctx's cause if ctx ends first. Then read stays behind: nothing
// ends the opening of a pipe without a writer.
func await(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := read()
		done <- result{b, err}
	}()
	select {
	case r := <-done:
		return r.b, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Open opens a regular file for reading. It follows symbolic links.
func Open(path string) (*os.File, error) {
	st, err := os.Stat(path) // opening a pipe without a writer would wait forever
	if err != nil {
		return nil, err
	}
	if err := Regular(path, st.Mode()); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// ErrNotRegular says that something is a folder, a device, or a pipe.
var ErrNotRegular = errors.New("it isn't a regular file")

// Regular returns an error for anything but a regular file.
func Regular(path string, mode fs.FileMode) error {
	if mode.IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "read", Path: path, Err: ErrNotRegular}
}

// read allocates a buffer for the file's size if that is within the limit.
func read(open func(string) (*os.File, error), path string, limit int64) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Mode().IsRegular() && st.Size() > limit {
		return nil, &TooLargeError{f.Name(), limit}
	}
	var b bytes.Buffer
	b.Grow(int(min(st.Size(), limit)) + bytes.MinRead)
	if _, err = b.ReadFrom(io.LimitReader(f, limit+1)); err == nil && int64(b.Len()) > limit {
		err = &TooLargeError{f.Name(), limit}
	}
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// ReadAll reads r to its end. If there are more than limit bytes, it returns the first limit bytes
// and a TooLargeError.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		return b[:limit], &TooLargeError{"", limit}
	}
	return b, err
}
