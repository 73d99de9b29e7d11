package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// slowStore is the time from the last byte handed to the system to the storage's answer; a thin line still has to
// drain the socket's buffer.
const slowStore = 2 * time.Minute

// Blob is a file to upload. Reader must stay readable until Upload returns, may be read at several offsets at once, and
// more than once.
type Blob struct {
	Path   string
	Size   int64
	SHA256 string // hex; computed from Reader when empty
	Reader io.ReaderAt
}

// upload is one file on its way to a branch.
type upload struct {
	t         *wire.Transport
	puts      wire.Slots
	turns     *turns
	held      held
	repo, rev string
	Blob
}

func (b Blob) section(off, n int64) io.Reader { return io.NewSectionReader(b.Reader, off, n) }

// head gives the first n bytes.
func (b Blob) head(n int64) ([]byte, error) {
	data := make([]byte, n)
	if _, err := io.ReadFull(b.section(0, b.Size), data); err != nil {
		return nil, fmt.Errorf("read %s: %w", b.Path, err)
	}
	return data, nil
}

// errorf makes an *Error of the file's upload.
func (u *upload) errorf(sentinel error, format string, args ...any) error {
	return u.t.Errorf("upload "+u.Path, sentinel, format, args...)
}

// put sends bytes [off, off+n) to a storage link, and gives the ETag verbatim, quotes included; the token never goes along.
// Without the ETag of a part the object cannot be completed, so that such an answer is as good as none.
func (u *upload) put(ctx context.Context, link string, header http.Header, off, n int64, part bool) (etag string, err error) {
	r := &wire.Request{Op: "upload " + u.Path, Repo: u.repo, Method: http.MethodPut, URL: link, Header: header,
		Body: func() io.Reader { return u.section(off, n) }, Size: n,
		Bulk: true, Follow: wire.FollowSame, Slow: slowStore, Slot: &wire.Slot{Of: u.puts}}
	err = u.t.Retry(ctx, r, func(ctx context.Context) error {
		if err := r.Slot.Take(ctx); err != nil {
			return err
		}
		answer, err := u.t.Once(ctx, r, nil)
		if etag = answer.Get("ETag"); err == nil && part && etag == "" {
			err = u.errorf(wire.ErrNoETag, "")
		}
		return err
	})
	return etag, stale(err)
}

// stale marks the refusal of a link, as against that of the bytes sent to it: S3 answers 403 to a link that has expired,
// 400 ExpiredToken if its credentials have, and 404 NoSuchUpload for a multipart upload that was ended.
func stale(err error) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || errors.Is(err, wire.ErrQuota) {
		return err
	}
	switch e.Status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return e.Under(wire.ErrStale)
	case http.StatusBadRequest:
		if e.Code == "ExpiredToken" {
			return e.Under(wire.ErrStale)
		}
	}
	return err
}

// completedPart is one line of the completion.
type completedPart struct {
	PartNumber int    `json:"partNumber"`
	ETag       string `json:"etag"`
}

// held is what the storage holds of an upload, kept between the rounds of one file.
type held struct {
	id    string // of the upload that done belongs to
	done  []completedPart
	best  int           // parts that any round had up
	needs time.Duration // for the whole file, if that was more than the links' lifetime

	lifetime time.Duration
}
