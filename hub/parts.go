package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// parts are the links of a multipart upload, in order.
type parts struct {
	chunk   int64
	urls    []string
	id      string    // of the upload that the parts belong to; "" if the links do not tell
	expires time.Time // zero if they do not tell
}

// readParts reads chunk_size and the numbered links from an upload action; nil when the action asks for a single PUT. The
// header is that of the answer which held the action.
func readParts(a *lfsAction, size int64, header http.Header, now time.Time) (*parts, error) {
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
	if first, err := wire.ParseVerbatim(p.urls[0]); err == nil {
		p.id, p.expires = first.Query().Get("uploadId"), expiryOf(first, header, now)
	}
	return p, nil
}

// resume keeps the parts that are up if the links belong to the same upload.
func (h *held) resume(p *parts) {
	if p.id == "" || p.id != h.id || len(h.done) != len(p.urls) {
		h.done = make([]completedPart, len(p.urls))
	}
	h.id = p.id
}

// putParts sends the parts that are missing, several at once, and completes the object at link. When a link is refused, no
// further part is begun, but those under way come to their end: what they bring may be kept, and the storage may ask to wait.
func (u *upload) putParts(ctx context.Context, link string, p *parts) error {
	u.held.resume(p)
	r := &round{upload: u, parts: p, start: u.t.Opt.Clock.Now()}
	g, groupCtx := errgroup.WithContext(ctx)
	g.SetLimit(cap(u.puts))
	for i := range p.urls {
		if u.held.done[i].ETag != "" {
			continue
		}
		g.Go(func() error {
			if groupCtx.Err() != nil || r.over() != nil {
				return nil //nolint:nilerr // the first error is told already
			}
			off := int64(i) * p.chunk
			n := min(p.chunk, u.Size-off)
			etag, err := u.put(groupCtx, p.urls[i], nil, off, n, true)
			if errors.Is(err, wire.ErrStale) {
				r.end(err)
				return nil
			}
			if err == nil {
				r.acknowledged(i, etag, n)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.over(); err != nil {
		return err
	}
	err := u.complete(ctx, link, u.held.done)
	if err != nil {
		u.held = held{} // one of the parts may not be what the storage holds
	}
	return err
}

// round is one try to send the missing parts of a file.
type round struct {
	*upload
	parts *parts
	start time.Time

	mu    sync.Mutex
	sent  int64 // acknowledged in this round
	ended error // the first refusal of a link
}

func (r *round) over() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

func (r *round) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = cmp.Or(r.ended, err)
}

// acknowledged notes a part, and ends the round if its links would not live to its end while other files share the line:
// one file at a time has the better chance.
func (r *round) acknowledged(i int, etag string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &r.held
	h.done[i] = completedPart{PartNumber: i + 1, ETag: etag}
	r.sent += n
	up, left := 0, int64(0)
	for j, part := range h.done {
		if part.ETag != "" {
			up++
		} else {
			left += min(r.parts.chunk, r.Size-int64(j)*r.parts.chunk)
		}
	}
	h.best = max(h.best, up)
	now := r.t.Opt.Clock.Now()
	took := now.Sub(r.start)
	needs := time.Duration(float64(took) / float64(r.sent) * float64(left))
	h.needs = 0
	if r.parts.expires.IsZero() || !now.Add(needs).After(r.parts.expires) {
		return
	}
	h.needs, h.lifetime = took+needs, r.parts.expires.Sub(r.start)
	if r.ended == nil && up >= cap(r.puts) && r.turns.goAlone() {
		r.ended = r.errorf(wire.ErrStale, "%s would take %v, longer than its links live; it waits until it is alone",
			r.Path, h.needs.Round(time.Second))
	}
}

// complete joins the parts. It may be repeated. Where it is refused, new parts may do better, unless the next batch call tells
// that the object is there after all. A hub that is in trouble for as long as anything is waited for has the batch call alone.
func (u *upload) complete(ctx context.Context, link string, done []completedPart) error {
	r := wire.Send("complete the upload of "+u.Path, u.repo, http.MethodPost, link, map[string]any{"oid": u.SHA256, "parts": done})
	r.Header = http.Header{"Accept": {lfsJSON}, "Content-Type": {lfsJSON}}
	r.Token, r.Slow = false, slowAnswer
	_, err := u.t.Call(ctx, r, nil)
	if wire.IsA[*wire.GaveUp](err) {
		if obj, lookErr := u.batch(ctx); lookErr == nil && obj.stored() {
			return nil
		}
		return err
	}
	if e, ok := errors.AsType[*wire.Error](err); ok && !errors.Is(err, wire.ErrQuota) {
		return e.Under(wire.ErrStale)
	}
	return err
}
