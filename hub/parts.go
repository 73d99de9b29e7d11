package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// parts are the links of a multipart upload, in order, each for chunk bytes of the file.
type parts struct {
	chunk int64
	urls  []string
}

// readParts reads chunk_size and the numbered links from an upload action; nil when the action asks for a single PUT.
func readParts(a *lfsAction, size int64) (*parts, error) {
	if _, ok := a.Header["chunk_size"]; !ok {
		return nil, nil
	}
	chunk, err := strconv.ParseInt(a.text("chunk_size"), 10, 64)
	if err != nil || chunk <= 0 {
		return nil, fmt.Errorf("%w: chunk_size is %q", wire.ErrNotHub, a.text("chunk_size"))
	}
	byNumber := map[int64]string{}
	for key := range a.Header {
		if n, err := strconv.ParseUint(key, 10, 31); err == nil {
			byNumber[int64(n)] = a.text(key)
		}
	}
	want := (size + chunk - 1) / chunk
	if int64(len(byNumber)) != want {
		return nil, fmt.Errorf("%w: %d part links for %d parts", wire.ErrNotHub, len(byNumber), want)
	}
	p := &parts{chunk: chunk}
	for n := range want {
		link, ok := byNumber[n+1]
		if !ok {
			return nil, fmt.Errorf("%w: part link %d is missing", wire.ErrNotHub, n+1)
		}
		p.urls = append(p.urls, link)
	}
	return p, nil
}

// completedPart is one line of the completion.
type completedPart struct {
	PartNumber int    `json:"partNumber"`
	ETag       string `json:"etag"`
}

// putParts sends the parts, several at once, and completes the object at link. After a failure no further part is begun, but
// those under way come to their end: the storage may ask to wait, which holds for whatever is sent next.
func (u *upload) putParts(ctx context.Context, link string, p *parts) error {
	done := make([]completedPart, len(p.urls))
	var failed atomic.Bool
	var group errgroup.Group
	group.SetLimit(cap(u.puts))
	for i, part := range p.urls {
		group.Go(func() error {
			if failed.Load() {
				return nil // that failure is told
			}
			off := int64(i) * p.chunk
			etag, err := u.put(ctx, part, nil, off, min(p.chunk, u.Size-off), true)
			if err != nil {
				failed.Store(true)
			}
			done[i] = completedPart{PartNumber: i + 1, ETag: etag}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return u.complete(ctx, link, done)
}

// complete joins the parts. It may be repeated. Where it is refused, new parts may do better, unless the next batch call tells
// that the object is there after all. A hub that is in trouble for as long as anything is waited for has the batch call alone.
func (u *upload) complete(ctx context.Context, link string, done []completedPart) error {
	r := wire.Send("complete the upload of "+u.Path, u.repo, http.MethodPost, link, map[string]any{"oid": u.SHA256, "parts": done})
	r.Header = http.Header{"Accept": {lfsJSON}, "Content-Type": {lfsJSON}}
	r.Token, r.Slow = false, slowAnswer
	_, err := u.t.Call(ctx, r, nil)
	e, ok := errors.AsType[*wire.Error](err)
	switch {
	case !ok || errors.Is(err, wire.ErrQuota):
		return err
	case !e.GaveUp():
		return e.Under(wire.ErrStale)
	}
	if obj, lookErr := u.batch(ctx); lookErr == nil && obj.stored() {
		return nil
	}
	return err
}
