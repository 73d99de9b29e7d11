package hub

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/df11-convert/df11-convert/internal/streams"
)

// Blob is a file to upload. Reader must stay readable until Upload returns, may be read at several offsets at once, and
// more than once.
type Blob struct {
	Path   string
	Size   int64
	SHA256 string // hex; computed from Reader when empty
	Reader io.ReaderAt
}

const (
	sampleBytes = 512      // of a file's head, by which the hub sniffs its kind
	maxRegular  = 50 << 20 // a regular file travels inside the commit
	maxRounds   = 3        // upload links asked for per file without progress

	// slowStore is the time from the last byte handed to the system to the storage's answer; a thin line still has to
	// drain the socket's buffer.
	slowStore = 2 * time.Minute
)

// upload is one file on its way to a branch.
type upload struct {
	t         *transport
	puts      slots
	turns     *turns
	held      held
	repo, rev string
	Blob
}

// Upload brings a file to where a commit can name it, and gives the Op for that commit. The hub decides whether it goes
// into the commit itself or into its store; a file that the branch or the store already holds is not sent. Upload may be
// repeated, and runs for several files at once.
func (c *Client) Upload(ctx context.Context, repo, rev string, b Blob) (Op, error) {
	rev = cmp.Or(rev, "main")
	if err := checkSource(repo, rev, b.Path); err != nil {
		return Op{}, err
	}
	if b.SHA256 == "" {
		h := sha256.New()
		if n, err := streams.Copy(ctx, h, b.section(0, b.Size)); err != nil || n != b.Size {
			return Op{}, fmt.Errorf("hash %s: read %d of %d bytes: %w", b.Path, n, b.Size, cmp.Or(err, io.ErrUnexpectedEOF))
		}
		b.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	u := &upload{t: c.t, puts: c.puts, turns: c.turns, repo: repo, rev: rev, Blob: b}
	mode, err := u.preupload(ctx)
	if err != nil {
		return Op{}, err
	}
	if mode.UploadMode != "lfs" || b.Size == 0 { // the storage refuses empty objects
		return u.regularOp(mode.OID)
	}
	if mode.OID == b.SHA256 {
		return Op{Path: b.Path, Size: b.Size, SHA256: b.SHA256}, nil
	}
	if err := u.sendObject(ctx); err != nil {
		return Op{}, err
	}
	return LFSOp(b.Path, b.SHA256, b.Size), nil
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
	return u.t.errorf("upload "+u.Path, sentinel, format, args...)
}

// uploadMode is the hub's decision about one file. Its shouldIgnore, for a match in the repo's .gitignore, is not read: that is
// for clients which add whole folders, while a file that is uploaded by name is wanted, as with git add --force.
type uploadMode struct {
	Path       string `json:"path"`
	UploadMode string `json:"uploadMode"`
	OID        string `json:"oid"` // of the file that the branch holds now: sha256, or git hash of a regular file
}

func (u *upload) preupload(ctx context.Context) (*uploadMode, error) {
	sample, err := u.head(min(u.Size, sampleBytes))
	if err != nil {
		return nil, err
	}
	r := u.t.repoSend("ask how to upload "+u.Path, u.repo, http.MethodPost, revPath("preupload", u.rev), map[string]any{"files": []any{
		map[string]any{"path": u.Path, "size": u.Size, "sample": base64.StdEncoding.EncodeToString(sample)}}})
	var answer struct{ Files []uploadMode }
	if _, err := u.t.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	if len(answer.Files) != 1 || answer.Files[0].Path != u.Path {
		return nil, u.t.errorf(r.op, ErrNotHub, "the answer does not name the file")
	}
	mode := &answer.Files[0]
	if mode.UploadMode != "lfs" && mode.UploadMode != "regular" {
		return nil, u.t.errorf(r.op, ErrNotHub, "upload mode is %q", mode.UploadMode)
	}
	return mode, nil
}

// regularOp puts the file into the commit, unless its hash is the one that the branch holds there already.
func (u *upload) regularOp(there string) (Op, error) {
	if u.Size > maxRegular {
		return Op{}, u.errorf(ErrTooLarge, "the hub wants %d bytes inside a commit", u.Size)
	}
	content, err := u.head(u.Size)
	if err != nil {
		return Op{}, err
	}
	if got := hashLike(u.SHA256, content); got != u.SHA256 {
		return Op{}, u.errorf(ErrCorrupt, "sha256 is %s, expected %s", got, u.SHA256)
	}
	if there != "" && there == gitBlobHash(content) {
		return Op{Path: u.Path, Size: u.Size}, nil
	}
	return FileOp(u.Path, content), nil
}

// errNoETag is a fault of the storage that may pass, as a 500 may.
var errNoETag = errors.New("the storage acknowledged a part without an ETag")

// errStale says that upload links are no longer good: ask for new ones.
var errStale = errors.New("upload link refused")

// sendObject uploads one object, with fresh links when the old ones expire or the storage loses track. A round that brought
// more parts up than any before is no failure.
func (u *upload) sendObject(ctx context.Context) error {
	var last error
	for failed := 0; failed < maxRounds; failed++ {
		best := u.held.best
		if last = u.try(ctx); !errors.Is(last, errStale) {
			return last
		}
		if u.held.best > best {
			failed = -1
		}
		u.t.opt.Log.Info("upload goes on with fresh links", "file", u.Path, "err", oneLine(last.Error()))
	}
	if u.held.needs > 0 {
		return fmt.Errorf("%w; the links are good for %v, and at this rate the file takes %v", last,
			u.held.lifetime.Round(time.Second), u.held.needs.Round(time.Second))
	}
	return last
}

// try asks for links and sends what is missing. The links are asked for when it is the file's turn, so that they do not
// grow old before.
func (u *upload) try(ctx context.Context) error {
	leave, err := u.turns.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	obj, err := u.batch(ctx)
	if err != nil || obj.stored() {
		return err
	}
	return u.transfer(ctx, obj)
}

// transfer moves the bytes as the action says, then verifies.
func (u *upload) transfer(ctx context.Context, obj *lfsObject) error {
	action := *obj.Actions.Upload
	action.Href = u.t.endpoint.rewrite(action.Href)
	p, err := readParts(&action, u.Size, obj.header, u.t.opt.Clock.Now())
	if err != nil {
		return u.errorf(err, "")
	}
	if p == nil { // one PUT of the whole object
		_, err = u.put(ctx, action.Href, action.headers(), 0, u.Size, false)
	} else {
		err = u.putParts(ctx, action.Href, p)
	}
	if err != nil || obj.Actions.Verify == nil {
		return err
	}
	return u.verify(ctx, obj.Actions.Verify)
}

// put sends bytes [off, off+n) to a storage link, and gives the ETag verbatim, quotes included; the token never goes along.
// Without the ETag of a part the object cannot be completed, so that such an answer is as good as none.
func (u *upload) put(ctx context.Context, link string, header http.Header, off, n int64, part bool) (etag string, err error) {
	r := &request{op: "upload " + u.Path, repo: u.repo, method: http.MethodPut, url: link, header: header,
		body: func() io.Reader { return u.section(off, n) }, size: n,
		bulk: true, follow: followSame, slow: slowStore, slot: &slot{of: u.puts}}
	err = u.t.retry(ctx, r, func(ctx context.Context) error {
		if err := r.slot.take(ctx); err != nil {
			return err
		}
		answer, err := u.t.once(ctx, r, nil)
		if etag = answer.Get("ETag"); err == nil && part && etag == "" {
			err = u.errorf(errNoETag, "")
		}
		return err
	})
	return etag, stale(err)
}

// stale marks the refusal of a link, as against that of the bytes sent to it: S3 answers 403 to a link that has expired,
// 400 ExpiredToken if its credentials have, and 404 NoSuchUpload for a multipart upload that was ended.
func stale(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || errors.Is(err, ErrQuota) {
		return err
	}
	switch e.Status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return e.as(errStale)
	case http.StatusBadRequest:
		if e.Code == "ExpiredToken" {
			return e.as(errStale)
		}
	}
	return err
}

// verify makes the hub check that it holds the object. If it holds another one, our bytes or their hash are wrong, and no
// repeat helps.
func (u *upload) verify(ctx context.Context, a *lfsAction) error {
	r := send("verify the upload of "+u.Path, u.repo, http.MethodPost, u.t.endpoint.rewrite(a.Href),
		map[string]any{"oid": u.SHA256, "size": u.Size})
	r.header = a.headers()
	r.header.Set("Accept", lfsJSON)
	r.header.Set("Content-Type", lfsJSON)
	_, err := u.t.call(ctx, r, nil)
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	switch e.Status {
	case http.StatusNotFound:
		return e.as(errStale) // it never arrived: the batch call will say so
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		return e.as(ErrCorrupt)
	}
	return err
}
