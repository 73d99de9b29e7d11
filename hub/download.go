package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

var (
	errExpired  = errors.New("signed link expired")
	errBadRange = errors.New("server sent other bytes than asked for")
)

// sink receives the bytes of one range in order.
type sink interface {
	// space is where the next bytes go; empty when the range is complete.
	space() []byte
	// advance says that n bytes of space are filled.
	advance(n int)
	// filled is how many bytes of the range are there.
	filled() int64
}

// sliceSink fills a byte slice.
type sliceSink struct {
	buf []byte
	n   int
}

func (s *sliceSink) space() []byte { return s.buf[s.n:] }
func (s *sliceSink) advance(n int) { s.n += n }
func (s *sliceSink) filled() int64 { return int64(s.n) }

// minProgress is how many bytes must have arrived for the count of failures to
// start again: a server that gives single bytes does not keep us for ever.
const minProgress = 64 << 10

// fetch fills the sink with bytes [off, off+n) of a file, n being its size. It
// goes on where a broken connection stopped, renews expired links, and never
// accepts bytes that the answer does not declare to be the ones asked for.
func (c *Client) fetch(ctx context.Context, f FileRef, off, n int64, s sink) error {
	r := &request{op: "read " + f.String(), repo: f.Repo, method: http.MethodGet, bulk: true}
	failures := 0
	return c.t.retry(ctx, r, func(ctx context.Context, p *progress) error {
		loc, err := c.locate(ctx, f)
		if err != nil {
			return err
		}
		before := s.filled()
		err = c.fetchOnce(ctx, r, loc, off, n, s)
		got := s.filled() - before
		p.made = got >= min(minProgress, n-before) && got > 0
		if failures++; err == nil || p.made {
			failures = 0
		}
		if errors.Is(err, errExpired) || errors.Is(err, ErrChanged) || failures >= 3 {
			c.expire(ctx, f, loc) // another link or storage host may do better
		}
		return err
	})
}

// fetchOnce makes one ranged GET and reads its body into the sink.
func (c *Client) fetchOnce(ctx context.Context, r *request, loc *resolved, off, n int64, s sink) error {
	begin, end := off+s.filled(), off+n
	try := *r
	try.url, try.token = loc.url, loc.onHub
	try.header = http.Header{
		"Accept-Encoding": {"identity"}, // a compressed answer would ignore the range
		"Range":           {fmt.Sprintf("bytes=%d-%d", begin, end-1)},
	}
	resp, err := c.t.exchange(ctx, &try)
	if err != nil {
		return rangeRefused(loc, err)
	}
	defer resp.Body.Close()
	skip, err := checkRange(loc, resp, begin, end)
	if err != nil {
		return c.t.failure(&try, resp.Request.URL, err)
	}
	if err := readInto(resp.Body, skip, s); err != nil {
		return c.t.failure(&try, resp.Request.URL, err)
	}
	return nil
}

// rangeRefused reads what a refused GET means: a storage host that refuses a
// signed link says that it has expired, and 416 that the size is another one.
func rangeRefused(loc *resolved, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case !loc.onHub && (e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized ||
		e.Status == http.StatusNotFound || e.Status == http.StatusGone):
		expired := *e
		expired.Err = errExpired
		return &expired
	case e.Status == http.StatusRequestedRangeNotSatisfiable:
		changed := *e
		changed.Err = ErrChanged
		return &changed
	}
	return err
}

// maxSkip is how much of a whole-file answer is read past to reach a range.
const maxSkip = 64 << 20

// checkRange makes sure that the body holds what was asked for; skip is how
// many of its first bytes to pass over.
func checkRange(loc *resolved, resp *http.Response, begin, end int64) (skip int64, err error) {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return 0, fmt.Errorf("%w: body is encoded as %s", errBadRange, oneLine(enc))
	}
	if loc.onHub {
		if etag := cleanETag(orDefault(resp.Header.Get("X-Linked-Etag"), resp.Header.Get("ETag"))); etag != "" && etag != loc.etag {
			return 0, fmt.Errorf("%w: etag was %s and is %s now", ErrChanged, loc.etag, oneLine(etag))
		}
	}
	switch resp.StatusCode {
	case http.StatusPartialContent:
		return 0, checkContentRange(resp.Header.Get("Content-Range"), begin, end, loc.size)
	case http.StatusOK:
		if n := resp.ContentLength; n >= 0 && n != loc.size {
			return 0, fmt.Errorf("%w: whole file of %d bytes, expected %d", errBadRange, n, loc.size)
		}
		if begin > maxSkip {
			return 0, fmt.Errorf("%w: the range was ignored", errBadRange)
		}
		return begin, nil
	}
	return 0, fmt.Errorf("%w: status %d", errBadRange, resp.StatusCode)
}

// checkContentRange compares "bytes begin-last/total" with what was asked.
func checkContentRange(value string, begin, end, size int64) error {
	span, ok := strings.CutPrefix(value, "bytes ")
	span, total, ok2 := strings.Cut(span, "/")
	first, last, ok3 := strings.Cut(span, "-")
	b, err := strconv.ParseInt(first, 10, 64)
	l, err2 := strconv.ParseInt(last, 10, 64)
	if !ok || !ok2 || !ok3 || errors.Join(err, err2) != nil {
		return fmt.Errorf("%w: Content-Range is %q", errBadRange, oneLine(value))
	}
	if b != begin || l < b || l >= end {
		return fmt.Errorf("%w: asked for %d-%d, got %q", errBadRange, begin, end-1, oneLine(value))
	}
	if total != "*" && total != strconv.FormatInt(size, 10) {
		return fmt.Errorf("%w: size is %s, expected %d", ErrChanged, oneLine(total), size)
	}
	return nil
}

// readInto passes over skip bytes and fills the sink. A body that ends early
// is io.ErrUnexpectedEOF; what lies beyond the range is not read.
func readInto(body io.Reader, skip int64, s sink) error {
	if skip > 0 {
		if _, err := io.CopyN(io.Discard, body, skip); err != nil {
			return earlyEnd(err)
		}
	}
	for {
		space := s.space()
		if len(space) == 0 {
			return nil
		}
		n, err := body.Read(space)
		s.advance(n)
		if err != nil && len(s.space()) > 0 {
			return earlyEnd(err)
		}
	}
}

func earlyEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ReadRange gives bytes [off, off+n) of a file; the caller owns them. They come
// from the shared cache where it holds the file. No hash covers a range.
func (c *Client) ReadRange(ctx context.Context, f FileRef, off, n int64) ([]byte, error) {
	if err := c.checkSpan(f, off, off+n); err != nil {
		return nil, err
	}
	if n > c.opt.RangeBytes {
		return c.readLong(ctx, f, off, n)
	}
	buf := make([]byte, n)
	if n == 0 {
		return buf, nil
	}
	if ok, err := c.readCached(f, off, buf); ok {
		return buf, err
	}
	if err := c.withSlot(ctx, c.conns, func() error {
		return c.fetch(ctx, f, off, n, &sliceSink{buf: buf})
	}); err != nil {
		return nil, err
	}
	return buf, nil
}

func (c *Client) readLong(ctx context.Context, f FileRef, off, n int64) ([]byte, error) {
	s, err := c.Stream(ctx, f, off, off+n)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	buf := make([]byte, n)
	if _, err := io.ReadFull(s, buf); err != nil {
		return nil, err
	}
	return buf, nil
}

// checkSpan refuses references and spans that no file has.
func (c *Client) checkSpan(f FileRef, off, end int64) error {
	if err := checkSource(f.Repo, f.Commit, f.Path); err != nil {
		return err
	}
	if off < 0 || end < off || end > f.Size {
		return c.errorf("read "+f.String(), ErrCorrupt, "bytes %d to %d lie outside the file's %d bytes", off, end, f.Size)
	}
	return nil
}

// readCached reads a span from the shared cache; ok says whether it is there.
func (c *Client) readCached(f FileRef, off int64, buf []byte) (ok bool, err error) {
	path, ok := c.CachedPath(f)
	if !ok {
		return false, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return false, nil // gone since: the hub has it
	}
	defer file.Close()
	_, err = file.ReadAt(buf, off)
	return err == nil, err
}

// withSlot runs fn while it holds one of the slots.
func (c *Client) withSlot(ctx context.Context, slots chan struct{}, fn func() error) error {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-slots }()
	return fn()
}

// ReadFile gives a whole small file of a commit, from the shared cache if it
// is there. Its hash is checked: sha256 of large files, git blob hash of plain
// ones. A file above maxBytes is ErrTooLarge. The caller owns the bytes.
func (c *Client) ReadFile(ctx context.Context, repo, commit, path string, maxBytes int64) ([]byte, error) {
	if err := checkSource(repo, commit, path); err != nil {
		return nil, err
	}
	f := FileRef{Repo: repo, Commit: commit, Path: path}
	if data, ok := c.cachedFile(f, maxBytes); ok {
		return data, nil
	}
	var err error
	for range 2 { // wrong bytes of the right size are fetched once more
		var data []byte
		if data, err = c.readWhole(ctx, f, maxBytes); err == nil || !errors.Is(err, ErrCorrupt) {
			return data, err
		}
	}
	return nil, err
}

func (c *Client) readWhole(ctx context.Context, f FileRef, maxBytes int64) ([]byte, error) {
	loc, err := c.locate(ctx, f)
	if err != nil {
		return nil, err
	}
	op := "read " + f.String()
	if loc.size > maxBytes {
		return nil, c.errorf(op, ErrTooLarge, "%d bytes, at most %d are expected", loc.size, maxBytes)
	}
	data := make([]byte, loc.size)
	if loc.size > 0 {
		err = c.withSlot(ctx, c.conns, func() error { return c.fetch(ctx, f, 0, loc.size, &sliceSink{buf: data}) })
		if err != nil {
			return nil, err
		}
	}
	if got := hashLike(loc.etag, data); got != loc.etag {
		return nil, c.errorf(op, ErrCorrupt, "hash is %s, published is %s", got, oneLine(loc.etag))
	}
	return data, nil
}

// hashLike hashes data in the way that etag was made, told by its length. An
// etag of another form covers nothing and is given back.
func hashLike(etag string, data []byte) string {
	switch {
	case isSHA256(etag):
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:])
	case isCommit(etag):
		return gitBlobHash(data)
	}
	return etag
}

// gitBlobHash is git's name for a file's content.
func gitBlobHash(data []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// checkSource refuses names that must not go into a URL or a path.
func checkSource(repo, commit, path string) error {
	if err := checkRepo(repo); err != nil {
		return err
	}
	if commit == "" {
		return fmt.Errorf("hub: read %s of %s: no commit given", path, repo)
	}
	return ValidPath(path)
}
