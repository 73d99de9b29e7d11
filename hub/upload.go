package hub

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Blob is a file to upload. Reader must stay readable until Upload returns, may
// be read at several offsets at once, and more than once.
type Blob struct {
	Path        string
	Size        int64
	SHA256      string // hex; computed from Reader when empty
	Reader      io.ReaderAt
	PullRequest bool // the commit will open a pull request
}

const (
	sampleBytes = 512      // of a file's head, by which the hub sniffs its kind
	maxRegular  = 50 << 20 // a regular file travels inside the commit
	maxRounds   = 3        // upload links asked for per file

	// slowStore is the time from the last byte handed to the system to the
	// storage's answer; a thin line still has to drain the socket's buffer.
	slowStore = 2 * time.Minute
)

// Upload brings a file to where a commit can name it, and gives the Op for
// that commit. The hub decides whether it goes into the commit itself or into
// its store; a file that the branch or the store already holds is not sent.
// Upload may be repeated, and runs for several files at once.
func (c *Client) Upload(ctx context.Context, repo, rev string, b Blob) (Op, error) {
	if err := checkSource(repo, orDefault(rev, "main"), b.Path); err != nil {
		return Op{}, err
	}
	rev = orDefault(rev, "main")
	if b.SHA256 == "" {
		var err error
		if b.SHA256, err = hashBlob(b); err != nil {
			return Op{}, err
		}
	}
	mode, err := c.preupload(ctx, repo, rev, b)
	if err != nil {
		return Op{}, err
	}
	if mode.UploadMode == "lfs" && b.Size > 0 { // the storage refuses empty objects
		if mode.OID == b.SHA256 {
			return Op{Path: b.Path, Size: b.Size, SHA256: b.SHA256}, nil
		}
		if err := c.sendObject(ctx, repo, rev, b); err != nil {
			return Op{}, err
		}
		return LFSOp(b.Path, b.SHA256, b.Size), nil
	}
	return c.regularOp(b, mode.OID)
}

func hashBlob(b Blob) (string, error) {
	h := sha256.New()
	if n, err := io.Copy(h, io.NewSectionReader(b.Reader, 0, b.Size)); err != nil || n != b.Size {
		return "", fmt.Errorf("hash %s: read %d of %d bytes: %w", b.Path, n, b.Size, orEOF(err))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// uploadMode is the hub's decision about one file.
type uploadMode struct {
	Path         string `json:"path"`
	UploadMode   string `json:"uploadMode"`
	ShouldIgnore bool   `json:"shouldIgnore"`
	OID          string `json:"oid"` // what the branch holds there: sha256, or git hash of a regular file
}

func (c *Client) preupload(ctx context.Context, repo, rev string, b Blob) (*uploadMode, error) {
	sample := make([]byte, min(b.Size, sampleBytes))
	if _, err := io.ReadFull(io.NewSectionReader(b.Reader, 0, b.Size), sample); err != nil {
		return nil, fmt.Errorf("read %s: %w", b.Path, err)
	}
	target := c.apiURL(repo, revPath("preupload", rev))
	if b.PullRequest {
		target += "?create_pr=1"
	}
	r := c.send("ask how to upload "+b.Path, repo, http.MethodPost, target, map[string]any{"files": []any{
		map[string]any{"path": b.Path, "size": b.Size, "sample": base64.StdEncoding.EncodeToString(sample)}}})
	var answer struct{ Files []uploadMode }
	if _, err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	if len(answer.Files) != 1 || answer.Files[0].Path != b.Path {
		return nil, c.errorf(r.op, ErrNotHub, "the answer does not name the file")
	}
	mode := &answer.Files[0]
	switch {
	case mode.ShouldIgnore:
		return nil, c.errorf(r.op, ErrIgnored, "%s", b.Path)
	case mode.UploadMode != "lfs" && mode.UploadMode != "regular":
		return nil, c.errorf(r.op, ErrNotHub, "upload mode is %q", oneLine(mode.UploadMode))
	}
	return mode, nil
}

func (c *Client) regularOp(b Blob, there string) (Op, error) {
	if b.Size > maxRegular {
		return Op{}, c.errorf("upload "+b.Path, ErrTooLarge, "the hub wants %d bytes inside a commit", b.Size)
	}
	content := make([]byte, b.Size)
	if _, err := io.ReadFull(io.NewSectionReader(b.Reader, 0, b.Size), content); err != nil {
		return Op{}, fmt.Errorf("read %s: %w", b.Path, err)
	}
	if got := hashLike(b.SHA256, content); got != b.SHA256 {
		return Op{}, c.errorf("upload "+b.Path, ErrCorrupt, "sha256 is %s, expected %s", got, b.SHA256)
	}
	if there != "" && there == gitBlobHash(content) {
		return Op{Path: b.Path, Size: b.Size}, nil
	}
	return FileOp(b.Path, content), nil
}

// errStale says that upload links are no longer good: ask for new ones.
var errStale = errors.New("upload link refused")

// sendObject uploads one object, with fresh links when the old ones expire or
// the storage loses track.
func (c *Client) sendObject(ctx context.Context, repo, rev string, b Blob) error {
	var last error
	for range maxRounds {
		obj, err := c.batch(ctx, repo, rev, b)
		if err != nil {
			return err
		}
		if obj.stored() {
			return nil
		}
		if last = c.transfer(ctx, repo, obj, b); last == nil || !errors.Is(last, errStale) {
			return last
		}
		c.t.log.Info("upload starts over with fresh links", "file", b.Path, "err", oneLine(last.Error()))
	}
	return last
}

// transfer moves the bytes as the action says, then verifies.
func (c *Client) transfer(ctx context.Context, repo string, obj *lfsObject, b Blob) error {
	action := *obj.Actions.Upload
	action.Href = rewrite(c.t.endpoint, action.Href)
	p, err := readParts(&action, b.Size)
	if err != nil {
		return c.errorf("upload "+b.Path, err, "")
	}
	if p == nil {
		err = c.putWhole(ctx, repo, &action, b)
	} else {
		err = c.putParts(ctx, repo, &action, p, b)
	}
	if err != nil || obj.Actions.Verify == nil {
		return err
	}
	return c.verify(ctx, repo, obj.Actions.Verify, b)
}

// putWhole sends the object in one PUT with its exact length.
func (c *Client) putWhole(ctx context.Context, repo string, a *lfsAction, b Blob) error {
	header := http.Header{}
	for key := range a.Header {
		header.Set(key, a.text(key))
	}
	_, err := c.put(ctx, repo, a.Href, header, b, 0, b.Size)
	return err
}

// put sends bytes [off, off+n) to a storage link; the token never goes along.
func (c *Client) put(ctx context.Context, repo, link string, header http.Header, b Blob, off, n int64) (http.Header, error) {
	r := &request{op: "upload " + b.Path, repo: repo, method: http.MethodPut, url: link, header: header,
		body: func() io.Reader { return io.NewSectionReader(b.Reader, off, n) }, size: n,
		bulk: true, follow: followSame, slow: slowStore}
	var answer http.Header
	err := c.withSlot(ctx, c.puts, func() (err error) {
		answer, err = c.call(ctx, r, nil)
		return err
	})
	return answer, stale(err)
}

// stale marks the refusal of a link that is no longer good.
func stale(err error) error {
	var e *Error
	if !errors.As(err, &e) || !e.linkGone() || errors.Is(err, ErrQuota) {
		return err
	}
	expired := *e
	expired.Err = errStale
	return &expired
}

// linkGone says whether the storage refuses a link, and not what is sent to
// it: S3 answers 403 to one that has expired, 400 ExpiredToken if its
// credentials have, and 404 NoSuchUpload for a multipart upload that was ended.
func (e *Error) linkGone() bool {
	switch e.Status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return e.Status == http.StatusBadRequest && e.Code == "ExpiredToken"
}

// completedPart is one line of the completion.
type completedPart struct {
	PartNumber int    `json:"partNumber"`
	ETag       string `json:"etag"`
}

// putParts sends all parts, several at once, and completes the object.
func (c *Client) putParts(ctx context.Context, repo string, a *lfsAction, p *parts, b Blob) error {
	done := make([]completedPart, len(p.urls))
	g, groupCtx := errgroup.WithContext(ctx)
	g.SetLimit(c.opt.Connections)
	for i, link := range p.urls {
		g.Go(func() error {
			if groupCtx.Err() != nil {
				return nil //nolint:nilerr // the first error is told already
			}
			off := int64(i) * p.chunk
			etag, err := c.putPart(groupCtx, repo, link, b, off, min(p.chunk, b.Size-off))
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
	return c.complete(ctx, repo, a.Href, b, done)
}

func (c *Client) putPart(ctx context.Context, repo, link string, b Blob, off, n int64) (string, error) {
	for range 2 {
		header, err := c.put(ctx, repo, link, nil, b, off, n)
		if err != nil {
			return "", err
		}
		if etag := header.Get("ETag"); etag != "" {
			return etag, nil // verbatim, quotes included
		}
	}
	return "", c.errorf("upload "+b.Path, ErrNotHub, "the storage acknowledged a part without an ETag")
}

// complete joins the parts. It may be repeated; when it fails for good, the
// next batch call tells whether the object is there after all.
func (c *Client) complete(ctx context.Context, repo, link string, b Blob, done []completedPart) error {
	r := c.send("complete the upload of "+b.Path, repo, http.MethodPost, link, map[string]any{"oid": b.SHA256, "parts": done})
	r.header = http.Header{"Accept": {lfsJSON}, "Content-Type": {lfsJSON}}
	r.token, r.slow = false, slowAnswer
	_, err := c.call(ctx, r, nil)
	var e *Error
	if err == nil || !errors.As(err, &e) || errors.Is(err, ErrQuota) {
		return err
	}
	again := *e
	again.Err = errStale
	return &again
}

// verify makes the hub check that it holds the object. If it holds another one,
// our bytes or their hash are wrong, and no repeat helps.
func (c *Client) verify(ctx context.Context, repo string, a *lfsAction, b Blob) error {
	r := c.send("verify the upload of "+b.Path, repo, http.MethodPost, rewrite(c.t.endpoint, a.Href),
		map[string]any{"oid": b.SHA256, "size": b.Size})
	r.header = http.Header{}
	for key := range a.Header {
		r.header.Set(key, a.text(key))
	}
	r.header.Set("Accept", lfsJSON)
	r.header.Set("Content-Type", lfsJSON)
	_, err := c.call(ctx, r, nil)
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	refused := *e
	switch e.Status {
	case http.StatusNotFound:
		refused.Err = errStale // it never arrived: the batch call will say so
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		refused.Err = ErrCorrupt
	}
	return &refused
}
