package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// parts are the links for the bytes of a file, in order, one per chunk.
type parts struct {
	chunk  int64
	urls   []string
	header http.Header // to send with each part
	// where to have the parts joined; "" if the file is sent whole
	join string
}

// readParts reads an upload action: the numbered links of a multipart upload, which the Hub puts
// among the headers, as lfs.py of the Python client reads it, or the one for a single PUT.
func readParts(a *lfsAction, link string, size int64) (*parts, error) {
	if _, ok := a.Header["chunk_size"]; !ok {
		return &parts{chunk: size, urls: []string{link}, header: a.headers()}, nil
	}
	chunk, err := strconv.ParseInt(a.Header["chunk_size"], 10, 64)
	if err != nil || chunk <= 0 {
		return nil, fmt.Errorf("%w: chunk_size is %q", ErrNotHub, a.Header["chunk_size"])
	}
	byNumber := map[int64]string{}
	for key, link := range a.Header {
		if n, err := strconv.ParseUint(key, 10, 31); err == nil {
			byNumber[int64(n)] = link
		}
	}
	p := &parts{chunk: chunk, join: link}
	want := (size + chunk - 1) / chunk
	for n := int64(1); n <= want && byNumber[n] != ""; n++ {
		p.urls = append(p.urls, byNumber[n])
	}
	if int64(len(p.urls)) != want {
		return nil, fmt.Errorf("%w: %d part links in order for %d parts", ErrNotHub,
			len(p.urls), want)
	}
	return p, nil
}

// A completedPart is one entry of the completion.
type completedPart struct {
	PartNumber int    `json:"partNumber"`
	ETag       string `json:"etag"`
}

// putParts sends the parts, several at once, and has them joined.
func (u *upload) putParts(ctx context.Context, p *parts) error {
	done := make([]completedPart, len(p.urls))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(int(u.files.transfers))
	for i := range p.urls {
		group.Go(func() error {
			etag, err := u.put(gctx, p, i)
			done[i] = completedPart{PartNumber: i + 1, ETag: etag}
			return err
		})
	}
	if err := group.Wait(); err != nil || p.join == "" {
		return err
	}
	return u.complete(ctx, p.join, done)
}

// complete has the parts joined, and may be repeated. If that's refused, as S3 does with 400
// InvalidPart, new parts may do better, unless the next batch call says that the object is there
// after all.
func (u *upload) complete(ctx context.Context, link string, done []completedPart) error {
	r := u.ask("complete the upload of "+u.Path, link, map[string]any{"oid": u.SHA256, "parts": done})
	r.token, r.slow = false, slowAnswer
	_, err := u.t.call(ctx, r, nil)
	e, ok := errors.AsType[*Error](err)
	if !ok || e.GaveUp() || errors.Is(err, ErrQuota) || errors.Is(err, ErrNotHub) {
		return err
	}
	return e.under(errStale)
}
