package model

import (
	"cmp"
	"context"
	"encoding/hex"
	"hash"
	"io"

	"github.com/df11-convert/df11-convert/hub"
)

// checkedFile streams a whole file of the Hub, from the shared cache if that holds a good copy. The last read fails with a
// SourceError if the hash is not the published one.
func checkedFile(ctx context.Context, c *hub.Client, ref hub.FileRef) (io.ReadCloser, error) {
	c.CheckCached(ctx, ref) // so that Stream does not use a damaged copy
	r, err := c.Stream(ctx, ref, 0, ref.Size)
	if err != nil {
		return nil, err
	}
	want := cmp.Or(ref.SHA256, ref.BlobID)
	if want == "" {
		return r, nil
	}
	return &checkedReader{r, ref.NewHash(), want, ref.Path}, nil
}

// checkedReader hashes what it reads, and returns io.EOF only if the hash is right.
type checkedReader struct {
	io.ReadCloser
	hash hash.Hash
	want string
	path string
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.hash.Write(p[:n])
	if err == io.EOF {
		if got := hex.EncodeToString(c.hash.Sum(nil)); got != c.want {
			return n, &SourceError{File: c.path, Want: c.want, Got: got}
		}
	}
	return n, err
}
