package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"golang.org/x/sync/semaphore"
)

// downloads fetches ranges of files from the hub's storage.
type downloads struct {
	t          *transport
	locations  *sync.Map           // answers.locations
	transfers  int64               // that may run at once
	rangeBytes int64               // per request of a stream
	conns      *semaphore.Weighted // running downloads
	peers      *peers
	buffers    chan []byte // shared fetch-ahead buffers; nil until used
}

func newDownloads(t *transport, locations *sync.Map, rangeBytes, nBuffers,
	transfers int64) *downloads {
	d := &downloads{t: t, locations: locations, transfers: transfers, rangeBytes: rangeBytes,
		conns:   semaphore.NewWeighted(transfers),
		peers:   &peers{conns: transfers, running: map[*lap]context.CancelCauseFunc{}},
		buffers: make(chan []byte, nBuffers)}
	for range cap(d.buffers) {
		d.buffers <- nil
	}
	return d
}

// read returns bytes [off, off+n) of a file, fetched as one range. It takes a connection.
func (d *downloads) read(ctx context.Context, f FileRef, off, n int64) ([]byte, error) {
	buf := make([]byte, n)
	if n == 0 {
		return buf, nil
	}
	if err := d.fetch(ctx, f, off, &segment{buf: buf}); err != nil {
		return nil, err
	}
	return buf, nil
}

// minProgress is how many bytes reset the count of failures, so that a server that sends single
// bytes can't hold us forever.
const minProgress = 64 << 10

// fetch fills the segment with the bytes of a file from off on. It continues where a broken
// connection stopped, renews expired links, and never accepts bytes unless the answer declares them
// to be the ones we asked for.
func (d *downloads) fetch(ctx context.Context, f FileRef, off int64, seg *segment) error {
	r := &request{op: "read " + f.String(), repo: f.Repo, method: http.MethodGet, bulk: true,
		token: true, lane: "files", follow: followAll}
	tries := 0
	return d.t.retry(ctx, r, func(ctx context.Context) error {
		loc, err := d.locate(ctx, f)
		if err == nil {
			err = takePlace(ctx, d.conns)
		}
		if err != nil {
			return err
		}
		defer d.conns.Release(1)
		tries++
		err = d.fetchOnce(ctx, r, loc, off, seg, tries <= maxSwitches)
		if errors.Is(err, errExpired) || errors.Is(err, ErrChanged) ||
			errors.Is(err, ErrNotHub) {
			loc.replace(ctx, nil)
		}
		return err
	})
}

// fetchOnce makes one ranged GET and reads its body into the segment. If mayGiveUp, it fails with
// errLagging when it lags. The connection is then closed, as is every connection whose body wasn't
// read to its end.
func (d *downloads) fetchOnce(ctx context.Context, r *request, loc *resolved, off int64,
	seg *segment, mayGiveUp bool) error {
	end := off + int64(len(seg.buf))
	begin := end - int64(len(seg.space()))
	try := *r
	try.url = loc.url
	try.header = http.Header{
		// CloudFront ignores the range if it may compress:
		// https://github.com/huggingface/huggingface_hub/pull/3778
		"Accept-Encoding": {"identity"},
		"Range":           {fmt.Sprintf("bytes=%d-%d", begin, end-1)},
	}
	try.accept = func(resp *http.Response) error {
		return checkRange(loc, resp, begin, end)
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	resp, err := d.t.exchange(ctx, &try)
	if err != nil {
		return rangeRefused(err)
	}
	defer resp.Body.Close()
	loc.follow(ctx, resp)
	if !mayGiveUp {
		giveUp = func(error) {}
	}
	lap := d.peers.begin(giveUp)
	err = seg.readFrom(resp.Body, func(n int) { d.peers.brought(lap, n) })
	d.peers.end(lap)
	if err != nil {
		broken := d.t.failure(&try, resp.Request.URL, err)
		missing, got := end-begin, end-begin-int64(len(seg.space()))
		broken.progress = got >= min(minProgress, missing) && got > 0
		return broken
	}
	return nil
}

// rangeRefused reads what a refused GET means. A storage host that refuses a signed link means that
// it expired, and 416 means that the file has another size. The hub's own refusals already have a
// sentinel.
func rangeRefused(err error) error {
	e := errorOf(err)
	switch {
	case e.Status == http.StatusRequestedRangeNotSatisfiable:
		return e.under(ErrChanged)
	case e.Err == nil && linkRefused(e):
		return e.under(errExpired)
	}
	return err
}

// checkRange checks that the body starts with the range we asked for.
func checkRange(loc *resolved, resp *http.Response, begin, end int64) error {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return fmt.Errorf("%w: body is encoded as %s", errBadRange, enc)
	}
	switch n := resp.ContentLength; {
	case resp.StatusCode == http.StatusPartialContent:
		return checkContentRange(resp.Header.Get("Content-Range"), begin, end, loc.size)
	case resp.StatusCode != http.StatusOK || begin > 0: // a whole file serves only its beginning
		return fmt.Errorf("%w: status %d", errBadRange, resp.StatusCode)
	case n >= 0 && n != loc.size:
		return fmt.Errorf("%w: whole file of %d bytes, expected %d", errBadRange, n, loc.size)
	}
	return nil
}

// checkContentRange compares "bytes begin-last/total" with the range we asked for.
func checkContentRange(value string, begin, end, size int64) error {
	var b, l int64
	var total string
	if _, err := fmt.Sscanf(value, "bytes %d-%d/%s", &b, &l, &total); err != nil {
		return fmt.Errorf("%w: Content-Range is %q", errBadRange, value)
	}
	if b != begin || l < b || l >= end {
		return fmt.Errorf("%w: asked for %d-%d, got %q", errBadRange, begin, end-1, value)
	}
	if total != "*" && total != strconv.FormatInt(size, 10) {
		return fmt.Errorf("%w: size is %s, expected %d", ErrChanged, total, size)
	}
	return nil
}
