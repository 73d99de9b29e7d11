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

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/streams"
)

const (
	sampleBytes = 512      // of a file's head, by which the hub sniffs its kind
	maxRegular  = 50 << 20 // a regular file travels inside the commit
	maxRounds   = 3        // upload links asked for per file without progress
)

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
	file := map[string]any{"path": u.Path, "size": u.Size, "sample": base64.StdEncoding.EncodeToString(sample)}
	r := u.t.RepoSend("ask how to upload "+u.Path, u.repo, http.MethodPost, wire.RevPath("preupload", u.rev),
		map[string]any{"files": []any{file}})
	var answer struct{ Files []uploadMode }
	if _, err := u.t.Call(ctx, r, &answer); err != nil {
		return nil, err
	}
	if len(answer.Files) != 1 || answer.Files[0].Path != u.Path {
		return nil, u.t.Errorf(r.Op, wire.ErrNotHub, "the answer does not name the file")
	}
	mode := &answer.Files[0]
	if mode.UploadMode != "lfs" && mode.UploadMode != "regular" {
		return nil, u.t.Errorf(r.Op, wire.ErrNotHub, "upload mode is %q", mode.UploadMode)
	}
	return mode, nil
}

// regularOp puts the file into the commit, unless its hash is the one that the branch holds there already.
func (u *upload) regularOp(there string) (Op, error) {
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
	if there != "" && there == gitBlobHash(content) {
		return Op{Path: u.Path, Size: u.Size}, nil
	}
	return FileOp(u.Path, content), nil
}

// sendObject uploads one object, with fresh links when the old ones expire or the storage loses track. A round that brought
// more parts up than any before is no failure.
func (u *upload) sendObject(ctx context.Context) error {
	var last error
	for failed := 0; failed < maxRounds; failed++ {
		best := u.held.best
		if last = u.try(ctx); !errors.Is(last, wire.ErrStale) {
			return last
		}
		if u.held.best > best {
			failed = -1
		}
		u.t.Opt.Log.Info("upload goes on with fresh links", "file", u.Path, "err", wire.OneLine(last.Error()))
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
	action.Href = u.t.Endpoint.Rewrite(action.Href)
	p, err := readParts(&action, u.Size, obj.header, u.t.Opt.Clock.Now())
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
