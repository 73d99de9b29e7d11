package hub

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// ReadRange gives bytes [off, off+n) of a file; the caller owns them. They come from the shared
// cache where it holds the file. No hash covers a range.
func (c *Client) ReadRange(ctx context.Context, f FileRef, off, n int64) ([]byte, error) {
	if err := c.files.checkSpan(f, off, off+n); err != nil {
		return nil, err
	}
	if file, _, ok := c.cache.open(f); ok {
		defer file.Close()
		buf := make([]byte, n)
		if _, err := file.ReadAt(buf, off); err == nil {
			return buf, nil
		}
	}
	return c.files.read(ctx, f, off, n)
}

// checkSpan refuses references and spans that no file has.
func (d *downloads) checkSpan(f FileRef, off, end int64) error {
	if err := checkSource(f.Repo, f.Commit, f.Path); err != nil {
		return err
	}
	if off < 0 || end < off || end > f.Size {
		return d.t.Errorf("read "+f.String(), wire.ErrCorrupt,
			"bytes %d to %d lie outside the file's %d bytes", off, end, f.Size)
	}
	return nil
}

// Stream gives bytes [off, end) of a file in order, several ranges ahead of the reader. It resumes,
// renews links and retries inside; io.EOF comes only after the last byte, and ErrChanged when the
// file is no longer the same. Fetch-ahead is bounded by Options.BufferBytes for all streams
// together, and one range for each stream besides. The hash of a whole file is the caller's to
// check. Close the reader; it may be closed at any time, but not while a Read runs. A Read ends as
// soon as ctx does.
func (c *Client) Stream(ctx context.Context, f FileRef, off, end int64) (io.ReadCloser, error) {
	if err := c.files.checkSpan(f, off, end); err != nil {
		return nil, err
	}
	if file, _, ok := c.cache.open(f); ok {
		return &cachedReader{Closer: file, r: io.NewSectionReader(file, off, end-off),
			left: end - off}, nil
	}
	return c.files.stream(ctx, f, off, end), nil
}

// cachedReader reads a span of a cached file. A file that has become shorter is an error, not the
// end.
type cachedReader struct {
	io.Closer
	r    io.Reader
	left int64
}

func (r *cachedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.left -= int64(n)
	if err == io.EOF && r.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// ReadFile gives a whole small file of a commit, from the shared cache if it is there. Its hash is
// checked: sha256 of large files, git blob hash of plain ones. A file above maxBytes is
// ErrTooLarge. The caller owns the bytes.
func (c *Client) ReadFile(ctx context.Context, f FileRef, maxBytes int64) ([]byte, error) {
	if err := checkSource(f.Repo, f.Commit, f.Path); err != nil {
		return nil, err
	}
	if data, ok := c.cache.readSmall(f, maxBytes); ok {
		return data, nil
	}
	data, err := c.files.readWhole(ctx, f, maxBytes)
	if errors.Is(err, wire.ErrCorrupt) { // wrong bytes of the right size are fetched once more
		return c.files.readWhole(ctx, f, maxBytes)
	}
	return data, err
}

// readWhole fetches a file and checks its hash.
func (d *downloads) readWhole(ctx context.Context, f FileRef, maxBytes int64) ([]byte, error) {
	loc, err := d.locate(ctx, f)
	if err != nil {
		return nil, err
	}
	op := "read " + f.String()
	if loc.size > maxBytes {
		return nil, d.t.Errorf(op, wire.ErrTooLarge, "%d bytes, at most %d are expected", loc.size,
			maxBytes)
	}
	data, err := d.read(ctx, f, 0, loc.size)
	if err != nil {
		return nil, err
	}
	if got := hashLike(loc.etag, data); got != loc.etag {
		return nil, d.t.Errorf(op, wire.ErrCorrupt, "hash is %s, published is %s", got, loc.etag)
	}
	return data, nil
}

// CheckCached reads the shared cache's copy of a file, and says whether it was damaged: then it is
// told in the log and not used again by this client. Without a known hash nothing is checked.
func (c *Client) CheckCached(ctx context.Context, f FileRef) (damaged bool) {
	for f.hash() != "" { // another copy may be found after a damaged one
		found, ok := c.cache.find(f)
		if !ok {
			break
		}
		got, err := f.hashFile(ctx, found.path)
		switch {
		case ctx.Err() != nil || got == f.hash():
			return damaged
		case err != nil:
			c.cache.discard(found.path, f, err.Error())
		default:
			c.cache.discard(found.path, f,
				fmt.Sprintf("its hash is %s, published is %s", got, f.hash()))
		}
		damaged = true
	}
	return damaged
}

// hashFile hashes a file as the hub hashes the referenced one.
func (f FileRef) hashFile(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := NewHash(f.hash(), f.Size)
	if _, err := streams.Copy(ctx, h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
