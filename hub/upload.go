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
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/streams"
)

const (
	sampleBytes = 512      // of a file's start; the hub uses them to find its kind
	maxRegular  = 50 << 20 // a regular file goes into the commit
	maxRounds   = 3        // times to send a file whose links don't last
	// a link that is refused within this time hasn't expired
	freshFor = time.Minute
	maxAsked = 100 // files per question, as the JS client asks; the Python client asks about 256
)

// A Blob is a file to upload. Reader must stay readable until Upload returns. Upload may read it at
// several offsets at once, and more than once. If the storage refuses what was sent, Upload
// compares the bytes with SHA256, and ends with ErrCorrupt if they differ.
type Blob struct {
	Path   string
	Size   int64
	SHA256 string // hex; "" is enough for a file that the hub wants in the commit
	Reader io.ReaderAt
}

func (b Blob) section(off, n int64) io.Reader { return io.NewSectionReader(b.Reader, off, n) }

// check refuses what can't be uploaded.
func (u *upload) check() error {
	switch {
	case u.Size < 0:
		return u.errorf(ErrArgument, "a file of %d bytes", u.Size)
	case u.Reader == nil:
		return u.errorf(ErrArgument, "there is no reader")
	case u.SHA256 != "" && !names.IsSHA256(u.SHA256):
		return u.errorf(ErrArgument, "%.100q is no SHA-256 in hex", u.SHA256)
	}
	return nil
}

// head returns the first n bytes.
func (b Blob) head(n int64) ([]byte, error) {
	data := make([]byte, n)
	if _, err := io.ReadFull(b.section(0, b.Size), data); err != nil {
		return nil, fmt.Errorf("read %s: %w", b.Path, err)
	}
	return data, nil
}

// An upload is one file on its way to a branch.
type upload struct {
	*Client
	repo, rev string
	Blob
	queued func()     // to call when the file gets its turn
	mode   string     // "lfs" or "regular", by the hub
	object *lfsObject // where it goes, from the last answer

	compared bool  // with its hash
	wrong    error // it has another
}

// Upload sends files to the hub and returns the Ops to commit them, in the order of the files. The
// hub decides whether a file goes into the commit or into its storage. A file that the storage
// already has isn't sent. You may repeat Upload, and run several at once. It asks about a hundred
// files at once.
func (c *Client) Upload(ctx context.Context, repo, rev string, blobs ...Blob) ([]Op, error) {
	var all []*upload
	queued := c.turns.queue()
	defer queued()
	for _, b := range blobs {
		if err := checkSource(repo, rev, b.Path); err != nil {
			return nil, err
		}
		u := &upload{Client: c, repo: repo, rev: rev, Blob: b, queued: queued}
		if err := u.check(); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	var ops []Op
	for group := range slices.Chunk(all, maxAsked) {
		if err := preupload(ctx, group); err != nil {
			return nil, err
		}
		for _, u := range group {
			op, err := LFSOp(u.Path, u.SHA256, u.Size), error(nil)
			switch {
			case !u.large():
				op, err = u.regularOp()
			case u.SHA256 == "":
				err = u.errorf(ErrArgument, "the storage needs its SHA-256")
			}
			if err != nil {
				return nil, err
			}
			ops = append(ops, op)
		}
		large := slices.DeleteFunc(slices.Clone(group), func(u *upload) bool { return !u.large() })
		if err := sendObjects(ctx, large); err != nil {
			return nil, err
		}
		for _, u := range large {
			if err := u.keepSample(); err != nil {
				return nil, err
			}
		}
	}
	return ops, nil
}

// large reports whether the file goes to the storage. S3 refuses empty objects here, so the Python
// client puts them into the commit, too (_commit_api.py).
func (u *upload) large() bool { return u.mode == "lfs" && u.Size > 0 }

// listOf names files in errors.
func listOf(files []*upload) string {
	if len(files) == 1 {
		return files[0].Path
	}
	return fmt.Sprintf("%s and %d more", files[0].Path, len(files)-1)
}

// preupload asks the hub how to upload the files. It ignores shouldIgnore, for a match in the
// repo's .gitignore: that's for clients that add whole folders, but these files are wanted, as with
// git add --force. It also ignores what the branch holds now, because the tree says that, and
// KohakuHub and hfd don't say it here.
func preupload(ctx context.Context, files []*upload) error {
	var asked []any
	for _, u := range files {
		sample, err := u.head(min(u.Size, sampleBytes))
		if err != nil {
			return err
		}
		asked = append(asked, map[string]any{"path": u.Path, "size": u.Size,
			"sample": base64.StdEncoding.EncodeToString(sample)})
	}
	first := files[0]
	r := first.t.repoSend("upload "+listOf(files)+" to "+first.repo, first.repo, http.MethodPost,
		revPath("preupload", first.rev), map[string]any{"files": asked})
	var answer struct {
		Files []struct{ Path, UploadMode string }
	}
	if _, err := first.t.call(ctx, r, &answer); err != nil {
		return err
	}
	modes := map[string]string{}
	for _, f := range answer.Files {
		modes[f.Path] = f.UploadMode
	}
	for _, u := range files {
		if u.mode = modes[u.Path]; u.mode != "lfs" && u.mode != "regular" {
			return u.t.errorf(r.op, ErrNotHub, "upload mode of %s is %q", u.Path, u.mode)
		}
	}
	return nil
}

// regularOp returns the Op that puts the file into the commit.
func (u *upload) regularOp() (Op, error) {
	if u.Size > maxRegular {
		return Op{}, u.errorf(ErrTooLarge, "the hub wants %d bytes inside a commit", u.Size)
	}
	content, err := u.head(u.Size)
	if err != nil {
		return Op{}, err
	}
	if got := hashLike(u.SHA256, content); got != u.SHA256 {
		return Op{}, u.otherHash(got)
	}
	return FileOp(u.Path, content), nil
}

func (u *upload) otherHash(got string) error {
	return u.errorf(ErrCorrupt, "its SHA-256 is %s, expected %s", got, u.SHA256)
}

// compare reads the whole file, once, and compares its hash. The storage refuses other bytes at the
// end of each upload, often without saying why, so they would be sent again and again.
func (u *upload) compare(ctx context.Context) {
	if u.compared {
		return
	}
	h := sha256.New()
	if _, err := streams.Copy(ctx, h, u.section(0, u.Size)); err != nil {
		return // sending it again says what is wrong
	}
	u.compared = true
	if got := hex.EncodeToString(h.Sum(nil)); got != u.SHA256 {
		u.wrong = u.otherHash(got)
	}
}

// errorf returns an *Error about the file's upload.
func (u *upload) errorf(sentinel error, format string, args ...any) error {
	return u.t.errorf("upload "+u.Path, sentinel, format, args...)
}

// sendObjects uploads objects. If the storage refuses a link, it asks for new ones. A storage that
// refuses fresh links is out of order, or blocked, and gets the time of an outage.
func sendObjects(ctx context.Context, files []*upload) error {
	if len(files) == 0 {
		return nil
	}
	first, rounds := files[0], 0
	r := &request{op: "upload " + listOf(files), repo: first.repo}
	return first.t.retry(ctx, r, func(ctx context.Context) error {
		began := first.t.opt.Clock.Now()
		err := try(ctx, files)
		if !errors.Is(err, errStale) {
			return err
		}
		if first.t.opt.Clock.Now().Sub(began) > freshFor {
			rounds++
		}
		if rounds == maxRounds {
			return err
		}
		return errorOf(err).under(errExpired)
	})
}

// try asks for links when it's the files' turn, so that the links don't expire, and sends the
// objects that the storage lacks. A refused link stops no other object.
func try(ctx context.Context, files []*upload) error {
	leave, err := files[0].turns.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	files[0].queued()
	if err := batch(ctx, files); err != nil {
		return err
	}
	var g errgroup.Group
	sent := map[string]bool{}
	for _, u := range files {
		if !u.object.stored() && !sent[u.SHA256] {
			sent[u.SHA256] = true
			g.Go(func() error {
				err := u.transfer(ctx, u.object)
				if errors.Is(err, errStale) {
					u.compare(ctx)
				}
				return err
			})
		}
	}
	err = g.Wait()
	for _, u := range files {
		if u.wrong != nil {
			return u.wrong
		}
	}
	return err
}

// transfer sends the bytes as the hub's action says, and then verifies.
func (u *upload) transfer(ctx context.Context, obj *lfsObject) error {
	action := obj.Actions.Upload
	p, err := readParts(action, u.t.endpoint.rewrite(action.Href), u.Size)
	if err != nil {
		return u.errorf(err, "")
	}
	if err := u.putParts(ctx, p); err != nil || obj.Actions.Verify == nil {
		return err
	}
	return u.verify(ctx, obj.Actions.Verify)
}

// put sends a part to its link, without the token, and returns the ETag verbatim, quotes included.
func (u *upload) put(ctx context.Context, p *parts, i int) (etag string, err error) {
	off := int64(i) * p.chunk
	n := min(p.chunk, u.Size-off)
	r := &request{op: "upload " + u.Path, repo: u.repo, method: http.MethodPut, url: p.urls[i],
		header: p.header,
		body:   func() io.Reader { return u.section(off, n) }, size: n,
		bulk: true, follow: followStorage, slow: slowAnswer}
	err = u.t.retry(ctx, r, func(ctx context.Context) error {
		if err := takePlace(ctx, u.puts); err != nil {
			return err
		}
		defer u.puts.Release(1)
		fed := u.turns.feed()
		defer fed()
		sending := *r
		sending.body = func() io.Reader { return &feeder{u.section(off, n), n, fed} }
		answer, err := u.t.callOnce(ctx, &sending, nil)
		etag = answer.Get("ETag")
		return err
	})
	if e := errorOf(err); linkRefused(e) && !errors.Is(err, ErrQuota) &&
		!errors.Is(err, ErrNotHub) {
		u.turns.oneByOne()
		return "", e.under(errStale)
	}
	if err == nil && p.join != "" && etag == "" { // lfs.py of the Python client stops here, too
		link, _ := url.Parse(r.url)
		return "", u.t.failure(r, link, errNoETag)
	}
	return etag, err
}
