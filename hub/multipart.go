package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// parts are the links of a multipart upload, in order.
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
		return nil, fmt.Errorf("%w: chunk_size is %q", ErrNotHub, oneLine(a.text("chunk_size")))
	}
	byNumber := map[int64]string{}
	for key := range a.Header {
		if n, err := strconv.ParseUint(key, 10, 31); err == nil {
			byNumber[int64(n)] = a.text(key)
		}
	}
	want := (size + chunk - 1) / chunk
	if int64(len(byNumber)) != want {
		return nil, fmt.Errorf("%w: %d part links for %d parts", ErrNotHub, len(byNumber), want)
	}
	p := &parts{chunk: chunk}
	for n := range want {
		link, ok := byNumber[n+1]
		if !ok {
			return nil, fmt.Errorf("%w: part link %d is missing", ErrNotHub, n+1)
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

// putParts sends all parts, several at once, and completes the object at link.
func (u *upload) putParts(ctx context.Context, link string, p *parts) error {
	done := make([]completedPart, len(p.urls))
	g, groupCtx := errgroup.WithContext(ctx)
	g.SetLimit(cap(u.puts))
	for i, part := range p.urls {
		g.Go(func() error {
			if groupCtx.Err() != nil {
				return nil //nolint:nilerr // the first error is told already
			}
			off := int64(i) * p.chunk
			etag, err := u.putPart(groupCtx, part, off, min(p.chunk, u.Size-off))
			done[i] = completedPart{PartNumber: i + 1, ETag: etag}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return u.complete(ctx, link, done)
}

func (u *upload) putPart(ctx context.Context, link string, off, n int64) (string, error) {
	for range 2 {
		header, err := u.put(ctx, link, nil, off, n)
		if err != nil {
			return "", err
		}
		if etag := header.Get("ETag"); etag != "" {
			return etag, nil // verbatim, quotes included
		}
	}
	return "", u.errorf(ErrNotHub, "the storage acknowledged a part without an ETag")
}

// complete joins the parts. It may be repeated; when it fails for good, the next batch call tells whether the object is
// there after all.
func (u *upload) complete(ctx context.Context, link string, done []completedPart) error {
	r := send("complete the upload of "+u.Path, u.repo, http.MethodPost, link, map[string]any{"oid": u.SHA256, "parts": done})
	r.header = http.Header{"Accept": {lfsJSON}, "Content-Type": {lfsJSON}}
	r.token, r.slow = false, slowAnswer
	_, err := u.t.call(ctx, r, nil)
	if e, ok := errors.AsType[*Error](err); ok && !errors.Is(err, ErrQuota) {
		return e.as(errStale)
	}
	return err
}
