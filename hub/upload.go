package hub

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/names"
)

const (
	sampleBytes = 512      // of a file's head, by which the hub sniffs its kind
	maxRegular  = 50 << 20 // a regular file travels inside the commit
	maxRounds   = 3        // times that links are asked for, for one file
)

// Blob is a file to upload. Reader must stay readable until Upload returns, may be read at several
// offsets at once, and more than once.
type Blob struct {
	Path   string
	Size   int64
	SHA256 string // hex
	Reader io.ReaderAt
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

// upload is one file on its way to a branch.
type upload struct {
	*Client
	repo, rev string
	Blob
}

// Upload brings a file to where a commit can name it, and gives the Op for that commit. The hub
// decides whether it goes into the commit itself or into its store; a file that the store already
// holds is not sent. Upload may be repeated, and runs for several files at once.
func (c *Client) Upload(ctx context.Context, repo, rev string, b Blob) (Op, error) {
	if err := checkSource(repo, rev, b.Path); err != nil {
		return Op{}, err
	}
	if !names.IsSHA256(b.SHA256) {
		return Op{}, fmt.Errorf("hub: upload %s: no sha256 given", b.Path)
	}
	u := &upload{c, repo, rev, b}
	mode, err := u.preupload(ctx)
	if err != nil {
		return Op{}, err
	}
	if mode != "lfs" || b.Size == 0 { // the storage refuses empty objects
		return u.regularOp()
	}
	if err := u.sendObject(ctx); err != nil {
		return Op{}, err
	}
	return LFSOp(b.Path, b.SHA256, b.Size), nil
}

// preupload gives the hub's decision about the file. Its shouldIgnore, for a match in the repo's
// .gitignore, is not read: that is for clients which add whole folders, while a file that is
// uploaded by name is wanted, as with git add --force. Nor is what the branch holds now: not every
// hub tells it there, and the tree does.
func (u *upload) preupload(ctx context.Context) (mode string, err error) {
	sample, err := u.head(min(u.Size, sampleBytes))
	if err != nil {
		return "", err
	}
	file := map[string]any{"path": u.Path, "size": u.Size,
		"sample": base64.StdEncoding.EncodeToString(sample)}
	r := u.t.RepoSend("ask how to upload "+u.Path, u.repo, http.MethodPost,
		wire.RevPath("preupload", u.rev),
		map[string]any{"files": []any{file}})
	var answer struct {
		Files []struct{ Path, UploadMode string }
	}
	if _, err := u.t.Call(ctx, r, &answer); err != nil {
		return "", err
	}
	if len(answer.Files) != 1 || answer.Files[0].Path != u.Path {
		return "", u.t.Errorf(r.Op, wire.ErrNotHub, "the answer does not name the file")
	}
	if mode = answer.Files[0].UploadMode; mode != "lfs" && mode != "regular" {
		return "", u.t.Errorf(r.Op, wire.ErrNotHub, "upload mode is %q", mode)
	}
	return mode, nil
}

// regularOp puts the file into the commit.
func (u *upload) regularOp() (Op, error) {
	if u.Size > maxRegular {
		return Op{}, u.errorf(wire.ErrTooLarge, "the hub wants %d bytes inside a commit", u.Size)
	}
	content, err := u.head(u.Size)
	if err != nil {
		return Op{}, err
	}
	if got := hashLike(u.SHA256, content); got != u.SHA256 {
		return Op{}, u.errorf(wire.ErrCorrupt, "sha256 is %s, expected %s", got, u.SHA256)
	}
	return FileOp(u.Path, content), nil
}

// errorf makes an *Error of the file's upload.
func (u *upload) errorf(sentinel error, format string, args ...any) error {
	return u.t.Errorf("upload "+u.Path, sentinel, format, args...)
}

// sendObject uploads one object, anew with fresh links when those it has are refused.
func (u *upload) sendObject(ctx context.Context) (err error) {
	for range maxRounds {
		if err = u.try(ctx); !errors.Is(err, wire.ErrStale) {
			return err
		}
		u.t.Opt.Log.Info("upload begins again with fresh links", "file", u.Path, "err",
			wire.OneLine(err.Error()))
	}
	return err
}

// try asks for links and sends the object. The links are asked for when it is the file's turn, so
// that they do not grow old before.
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

// transfer moves the bytes as the hub's action says, then verifies.
func (u *upload) transfer(ctx context.Context, obj *lfsObject) error {
	action := obj.Actions.Upload
	p, err := readParts(action, u.t.Endpoint.Rewrite(action.Href), u.Size)
	if err != nil {
		return u.errorf(err, "")
	}
	if err := u.putParts(ctx, p); err != nil || obj.Actions.Verify == nil {
		return err
	}
	return u.verify(ctx, obj.Actions.Verify)
}

// put sends a part to its link, and gives the ETag verbatim, quotes included; the token never goes
// along. Without the ETag of a part the object cannot be completed, so that such an answer is as
// good as none.
func (u *upload) put(ctx context.Context, p *parts, i int) (etag string, err error) {
	off := int64(i) * p.chunk
	n := min(p.chunk, u.Size-off)
	r := &wire.Request{Op: "upload " + u.Path, Repo: u.repo, Method: http.MethodPut, URL: p.urls[i],
		Header: p.header,
		Body:   func() io.Reader { return u.section(off, n) }, Size: n,
		Bulk: true, Follow: wire.FollowSame, Slow: slowAnswer, Slot: &wire.Slot{Of: u.puts}}
	err = u.t.Retry(ctx, r, func(ctx context.Context) error {
		if err := r.Slot.Take(ctx); err != nil {
			return err
		}
		answer, err := u.t.Once(ctx, r, nil)
		if etag = answer.Get("ETag"); err == nil && p.join != "" && etag == "" {
			err = u.errorf(wire.ErrNoETag, "")
		}
		return err
	})
	if e := wire.ErrorOf(err); linkRefused(e) && !errors.Is(err,
		wire.ErrQuota) {
		u.turns.oneByOne.Store(true)
		return "", e.Under(wire.ErrStale)
	}
	return etag, err
}

// turns let files share the line until the storage refuses a link, which lives for minutes only.
// From then on they go one by one: alone, a file has the best chance to be done in time.
type turns struct {
	files    *semaphore.Weighted
	oneByOne atomic.Bool
}

const allTurns = 1 << 20

// enter waits for a file's turn. Call leave at its end.
func (t *turns) enter(ctx context.Context) (leave func(), err error) {
	weight := int64(1)
	if t.oneByOne.Load() {
		weight = allTurns
	}
	if err := t.files.Acquire(ctx, weight); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { t.files.Release(weight) }, nil
}
