package hub

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	gohf "github.com/gomlx/go-huggingface/hub"
	"golang.org/x/sync/semaphore"
)

// A location is shared by all workers that read a file. One of them asks for all.
type location struct {
	lock *semaphore.Weighted // of one
	now  *resolved           // nil if the hub must be asked
}

// resolved is one answer to the metadata request.
type resolved struct {
	at     *location // the location it answers
	url    string    // signed or on the hub; never shown
	etag   string    // SHA-256 or git blob hash, unquoted
	commit string
	size   int64
}

// locate returns the location of a file, and asks the hub if there is none. A signed link serves
// until the storage refuses it.
func (d *downloads) locate(ctx context.Context, f FileRef) (r *resolved, err error) {
	known, _ := d.locations.LoadOrStore([...]string{f.Repo, f.Commit, f.Path},
		&location{lock: semaphore.NewWeighted(1)})
	at := known.(*location)
	if err := takePlace(ctx, at.lock); err != nil {
		return nil, err
	}
	defer at.lock.Release(1)
	if r = at.now; r == nil {
		if r, err = d.head(ctx, f); err != nil {
			return nil, err
		}
		r.at = at
	}
	if err := d.agree(f, r); err != nil {
		return nil, err
	}
	at.now = r
	return r, nil
}

// replace replaces this location unless another worker did so first. With nil, the next locate asks
// again.
func (r *resolved) replace(ctx context.Context, by *resolved) {
	if takePlace(ctx, r.at.lock) != nil {
		return
	}
	defer r.at.lock.Release(1)
	if r.at.now == r {
		r.at.now = by
	}
}

// follow remembers where the hub redirected a GET to, if the hub itself answered the HEAD, as
// KohakuHub does. The next ranges needn't ask the hub.
func (r *resolved) follow(ctx context.Context, resp *http.Response) {
	if to := resp.Request.URL.String(); to != r.url {
		stored := *r
		stored.url = to
		r.replace(ctx, &stored)
	}
}

// head asks for a file's metadata. It follows relative redirects. The absolute redirect to the data
// is the answer, because behind it the hub's headers are lost. A git file, which the hub sends
// itself, needs no question if its hash is known from a list of files.
func (d *downloads) head(ctx context.Context, f FileRef) (*resolved, error) {
	page := d.t.endpoint.page(f.Repo, revPath("resolve", f.Commit)+"/"+escapePath(f.Path))
	if f.Hash() != "" && (f.SHA256 == "" || hidesRedirects) {
		return &resolved{url: page, etag: f.Hash(), commit: f.Commit, size: f.Size}, nil
	}
	r := &request{op: "look up " + f.String(), repo: f.Repo, method: http.MethodHead,
		url:    page,
		follow: followRelative, token: true, lane: "files",
		header: http.Header{"Accept-Encoding": {"identity"}}}
	var got *resolved
	err := d.t.retry(ctx, r, func(ctx context.Context) error {
		resp, err := d.t.exchange(ctx, r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if got, err = readLocation(d.t.endpoint, f, resp); err != nil {
			return d.t.failure(r, resp.Request.URL, err)
		}
		return nil
	})
	return got, err
}

// readLocation reads the headers of the answer to a metadata request. The Hub's redirect of a
// small file has no X-Linked-Size, and KohakuHub, in front of another hub, makes it lead there. If
// a file's hash is known, so is its size.
func readLocation(e endpoint, f FileRef, resp *http.Response) (*resolved, error) {
	h := resp.Header
	r := &resolved{commit: h.Get(gohf.HeaderXRepoCommit), etag: etagOf(h), size: -1}
	if f.Hash() != "" {
		r.size = f.Size
	}
	u, err := resp.Request.URL, error(nil)
	if isRedirect(resp.StatusCode) {
		if u, _, err = e.target(u, h.Get("Location")); err != nil {
			return nil, err
		}
	} else if resp.ContentLength >= 0 {
		r.size = resp.ContentLength
	}
	if s := h.Get(gohf.HeaderXLinkedSize); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: X-Linked-Size is %q", ErrNotHub, s)
		}
		r.size = n
	}
	if r.commit == "" && r.etag == "" && r.size == 0 && !isRedirect(resp.StatusCode) {
		return nil, errEmpty
	}
	if r.commit == "" || r.etag == "" || r.size < 0 {
		return nil, fmt.Errorf("%w: commit, etag, or size is missing; is a proxy in between?",
			ErrNotHub)
	}
	r.url = u.String()
	return r, nil
}

// agree refuses metadata that contradicts the reference.
func (d *downloads) agree(f FileRef, r *resolved) error {
	op := "read " + f.String()
	if r.commit != f.Commit {
		return d.t.errorf(op, ErrChanged, "asked for commit %s, answered with %s", f.Commit,
			r.commit)
	}
	if want := f.Hash(); want != "" && (r.etag != want || r.size != f.Size) {
		return d.t.errorf(op, ErrChanged, "expected %s with %d bytes, answered %s with %d", want,
			f.Size, r.etag, r.size)
	}
	return nil
}

// linkRefused reports whether the storage wants another link. S3 answers 403 to an expired link,
// 400 ExpiredToken if its credentials expired, and 404 NoSuchUpload if a multipart upload was
// ended. hfd, whose links have a token for an hour, answers 401. LFS has 410 for an object that was
// removed.
func linkRefused(e *Error) bool {
	switch e.Status {
	case http.StatusForbidden, http.StatusUnauthorized, http.StatusNotFound, http.StatusGone:
		return true
	}
	return e.Status == http.StatusBadRequest && e.Code == "ExpiredToken"
}

// etagOf returns the hash of a file, without the marks that HTTP puts around it, as the Python
// client does: https://github.com/huggingface/huggingface_hub/pull/1428. KohakuHub leaves them out.
func etagOf(h http.Header) string {
	etag := cmp.Or(h.Get(gohf.HeaderXLinkedETag), h.Get("ETag"))
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(etag), "W/"), `"`)
}
