package hub

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/df11-convert/df11-convert/internal/human"
)

// A WitnessError says what another client sees in a repo that isn't as it was published.
type WitnessError struct {
	Repo, Commit string
	Files        []WrongFile // by path
}

// A WrongFile is a file that another client sees otherwise than it was published.
type WrongFile struct {
	Path string
	Is   string // what's wrong, as in "isn't listed"
	Gone bool   // it isn't there
}

func (e *WitnessError) Error() string {
	var files []string
	for _, f := range e.Files {
		files = append(files, f.Path+" "+f.Is)
	}
	return fmt.Sprintf("another client sees other files in %s than were published: %s", e.Repo,
		human.List(files))
}

// Unwrap returns the kind of failure, which knows what to do about it.
func (e *WitnessError) Unwrap() error { return errDiffers }

// rangeBytes is the size of a sample.
const rangeBytes = 1 << 10

// A sample is a part of a file whose bytes are known, kept for [Client.Witness].
type sample struct {
	off  int64
	data []byte
}

// randomRange returns where a sample of a file is, and its size.
func randomRange(size int64) (off, n int64) {
	n = min(size, rangeBytes)
	return rand.Int64N(size - n + 1), n
}

// keepSample keeps a random part of a file that the hub has now.
func (u *upload) keepSample() error {
	off, n := randomRange(u.Size)
	s := sample{off, make([]byte, n)}
	if _, err := io.ReadFull(u.section(off, n), s.data); err != nil {
		return fmt.Errorf("read %s: %w", u.Path, err)
	}
	u.samples.Store(u.SHA256, s)
	return nil
}

// KeepSample reads a random part of a file of a commit, and keeps it for [Client.Witness], unless
// it has one of a file with that SHA-256. It's for files that this client hasn't uploaded. Compare
// all bytes of that commit's file first: a hub's list proves nothing. It reads the part until two
// reads agree, because no hash covers a range on its way.
func (c *Client) KeepSample(ctx context.Context, f FileRef) error {
	if _, ok := c.samples.Load(f.SHA256); ok || f.Size == 0 {
		return nil
	}
	off, n := randomRange(f.Size)
	if err := c.files.checkSpan(f, off, off+n); err != nil {
		return err
	}
	var last []byte
	for range sampleReads {
		data, err := c.files.read(ctx, f, off, n)
		if err != nil {
			return err
		}
		if bytes.Equal(data, last) {
			c.samples.Store(f.SHA256, sample{off, data})
			return nil
		}
		last = data
	}
	return c.t.errorf("read "+f.Path, ErrCorrupt, "%d reads of one part differ", sampleReads)
}

// sampleReads is how often a part is read until two reads agree.
const sampleReads = 4
