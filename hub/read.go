package hub

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/df11-convert/df11-convert/internal/streams"
)

// ReadRange returns bytes [off, off+n) of a file, from the shared cache if it's there. The caller
// owns them. No hash covers a range.
func (c *Client) ReadRange(ctx context.Context, f FileRef, off, n int64) ([]byte, error) {
	if err := c.files.checkSpan(f, off, off+n); err != nil {
		return nil, err
	}
	if file, ok := c.cache.open(f); ok {
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
		return d.t.errorf("read "+f.String(), ErrArgument,
			"bytes %d to %d lie outside the file's %d bytes", off, end, f.Size)
	}
	return nil
}

// Stream returns bytes [off, end) of a file in order, and fetches several ranges ahead of the
// reader. It resumes, renews links, and retries. io.EOF comes only after the last byte, and
// ErrChanged if the file isn't the same any more. Fetching ahead is limited by Options.BufferBytes
// for all streams together, plus one range for each stream. The caller checks the hash of a whole
// file. Close the reader; you may close it at any time except during a Read. A Read ends as soon as
// ctx does.
func (c *Client) Stream(ctx context.Context, f FileRef, off, end int64) (io.ReadCloser, error) {
	if err := c.files.checkSpan(f, off, end); err != nil {
		return nil, err
	}
	if file, ok := c.cache.open(f); ok {
		return struct {
			io.Reader
			io.Closer
		}{io.NewSectionReader(file, off, end-off), file}, nil
	}
	return c.files.stream(ctx, f, off, end), nil
}

// ReadFile returns a small file of a commit, from the shared cache if it's there. It checks the
// hash: SHA-256 for large files, git's blob hash for plain ones. A file above maxBytes is
// ErrTooLarge. The caller owns the bytes.
func (c *Client) ReadFile(ctx context.Context, f FileRef, maxBytes int64) ([]byte, error) {
	if err := checkSource(f.Repo, f.Commit, f.Path); err != nil {
		return nil, err
	}
	if data, ok := c.cache.readSmall(f, maxBytes); ok {
		return data, nil
	}
	data, err := c.files.readWhole(ctx, f, maxBytes)
	if errors.Is(err, ErrCorrupt) { // fetch wrong bytes once more
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
		return nil, d.t.errorf(op, ErrTooLarge, "it has %d bytes, and at most %d are expected", loc.size,
			maxBytes)
	}
	data, err := d.read(ctx, f, 0, loc.size)
	if err != nil {
		return nil, err
	}
	if got := hashLike(loc.etag, data); got != loc.etag {
		return nil, d.t.errorf(op, ErrCorrupt, "hash is %s, published is %s", got, loc.etag)
	}
	return data, nil
}

// CheckCached reads the shared cache's copy of a file. If it's damaged, this client logs that and
// doesn't use it again. Without a known hash it checks nothing.
func (c *Client) CheckCached(ctx context.Context, f FileRef) {
	path, ok := c.cache.find(f)
	if !ok || f.Hash() == "" {
		return
	}
	got, err := f.hashFile(ctx, path)
	switch {
	case ctx.Err() != nil || got == f.Hash():
	case err != nil:
		c.cache.discard(path, f, err.Error())
	default:
		c.cache.discard(path, f, fmt.Sprintf("its hash is %s, published is %s", got, f.Hash()))
	}
}

// hashFile hashes a file as the hub hashes f.
func (f FileRef) hashFile(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := NewHash(f.Hash(), f.Size)
	if _, err := streams.Copy(ctx, h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
