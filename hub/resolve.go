package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	gohf "github.com/gomlx/go-huggingface/hub"
)

// FileRef names one file of a pinned commit. Size is required for ReadRange
// and Stream; SHA256 (large files) or BlobID (plain git files), if given, must
// match what the hub says at every look.
type FileRef struct {
	Repo, Commit, Path string
	Size               int64
	SHA256, BlobID     string
	NoCache            bool // do not look into the shared cache
}

// locationKey identifies a file of a commit.
type locationKey struct{ repo, commit, path string }

func (f FileRef) key() locationKey { return locationKey{f.Repo, f.Commit, f.Path} }

func (f FileRef) String() string { return f.Path + " of " + f.Repo }

// hash is what the hub should name as the file's etag, "" if unknown.
func (f FileRef) hash() string { return orDefault(f.SHA256, f.BlobID) }

// location is where a file's bytes can be had now, shared by all workers: one
// of them renews it for all.
type location struct {
	lock chan struct{} // holds one token; select on it to watch ctx
	now  *resolved
	pin  *resolved // the first answer; later ones must agree with it for the client's life
}

// resolved is one answer to the metadata request.
type resolved struct {
	url     string // signed or on the hub; never shown
	onHub   bool
	etag    string // sha256 or git blob hash, unquoted
	commit  string
	size    int64
	expires time.Time // zero when the URL does not tell
}

// expiryMargin renews a signed URL before its end.
const expiryMargin = time.Minute

// locate gives the current location of a file, asking the hub when there is
// none or it is about to expire.
func (c *Client) locate(ctx context.Context, f FileRef) (*resolved, error) {
	l := c.locationOf(f)
	select {
	case <-l.lock:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { l.lock <- struct{}{} }()
	if l.now != nil && (l.now.expires.IsZero() || c.t.clock.Now().Add(expiryMargin).Before(l.now.expires)) {
		return l.now, c.agree(f, l.pin, l.now)
	}
	r, err := c.head(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := c.agree(f, l.pin, r); err != nil {
		return nil, err
	}
	if l.pin == nil {
		l.pin = r
	}
	l.now = r
	return r, nil
}

func (c *Client) locationOf(f FileRef) *location {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.locations[f.key()]
	if l == nil {
		l = &location{lock: make(chan struct{}, 1)}
		l.lock <- struct{}{}
		c.locations[f.key()] = l
	}
	return l
}

// expire makes the next locate ask again, unless another worker already did.
func (c *Client) expire(ctx context.Context, f FileRef, old *resolved) {
	l := c.locationOf(f)
	select {
	case <-l.lock:
	case <-ctx.Done():
		return
	}
	if l.now == old {
		l.now = nil
	}
	l.lock <- struct{}{}
}

// head asks for a file's metadata. Relative redirects are followed, the
// absolute one to the data is the answer: beyond it the hub's headers are lost.
func (c *Client) head(ctx context.Context, f FileRef) (*resolved, error) {
	r := &request{op: "look up " + f.String(), repo: f.Repo, method: http.MethodHead,
		url: c.resolveURL(f.Repo, f.Commit, f.Path), follow: followRelative, token: true,
		header: http.Header{"Accept-Encoding": {"identity"}}}
	var got *resolved
	err := c.t.retry(ctx, r, func(ctx context.Context, _ *progress) error {
		resp, err := c.t.exchange(ctx, r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		got, err = c.t.metadata(resp)
		if err != nil {
			return c.t.failure(r, resp.Request.URL, err)
		}
		return nil
	})
	return got, err
}

// metadata reads the headers of a file's answer.
func (t *transport) metadata(resp *http.Response) (*resolved, error) {
	h := resp.Header
	r := &resolved{
		commit: h.Get(gohf.HeaderXRepoCommit),
		etag:   cleanETag(orDefault(h.Get(gohf.HeaderXLinkedETag), h.Get("ETag"))),
		size:   -1, url: resp.Request.URL.String(),
	}
	if isRedirect(resp.StatusCode) {
		next, _, err := t.target(resp.Request.URL, h.Get("Location"))
		if err != nil {
			return nil, err
		}
		r.url = sentURL(next)
	} else {
		r.size = resp.ContentLength
	}
	if s := h.Get(gohf.HeaderXLinkedSize); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: X-Linked-Size is %q", ErrNotHub, oneLine(s))
		}
		r.size = n
	}
	if r.commit == "" || r.etag == "" || r.size < 0 {
		return nil, fmt.Errorf("%w: commit, etag or size is missing; is a proxy in between?", ErrNotHub)
	}
	u, err := parseVerbatim(r.url)
	if err != nil {
		return nil, err
	}
	r.onHub = sameOrigin(u, t.endpoint)
	r.expires = expiryOf(u)
	return r, nil
}

// sentURL writes a URL as it is sent: the opaque form keeps its exact path.
func sentURL(u *url.URL) string {
	if u.Opaque == "" {
		return u.String()
	}
	s := u.Scheme + "://" + u.Host + u.Opaque
	if u.RawQuery != "" {
		s += "?" + u.RawQuery
	}
	return s
}

// agree refuses metadata that contradicts the reference or an earlier answer.
func (c *Client) agree(f FileRef, pin, r *resolved) error {
	op := "read " + f.String()
	if isCommit(f.Commit) && r.commit != f.Commit {
		return c.errorf(op, ErrChanged, "asked for commit %s, answered with %s", f.Commit, oneLine(r.commit))
	}
	if want := f.hash(); want != "" && r.etag != want {
		return c.errorf(op, ErrChanged, "hash is %s, expected %s", oneLine(r.etag), want)
	}
	if f.hash() != "" && r.size != f.Size {
		return c.errorf(op, ErrChanged, "size is %d, expected %d", r.size, f.Size)
	}
	if pin != nil && (pin.etag != r.etag || pin.size != r.size || pin.commit != r.commit) {
		return c.errorf(op, ErrChanged, "etag was %s and is %s now", pin.etag, oneLine(r.etag))
	}
	return nil
}

func cleanETag(s string) string {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(s), "W/"), `"`)
}

// expiryOf reads when a signed URL ends, from its S3 or CloudFront query; zero
// when it does not tell.
func expiryOf(u *url.URL) time.Time {
	q := u.Query()
	if s := q.Get("Expires"); s != "" {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 {
			return time.Unix(n, 0)
		}
	}
	begin, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	n, err2 := strconv.ParseInt(q.Get("X-Amz-Expires"), 10, 64)
	if errors.Join(err, err2) != nil || n <= 0 {
		return time.Time{}
	}
	return begin.Add(seconds(n))
}
