//go:build !js

package hub

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gohf "github.com/gomlx/go-huggingface/hub"
	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/names"
)

const (
	// witnessTime is how long the witness may take.
	witnessTime = 5 * time.Minute
	// witnessed is how many ranges it reads at once.
	witnessed = 8
)

// Witness reads a published commit with a client that isn't ours, gomlx/go-huggingface. That client
// lists the repo, reads the files in whole, and reads one range, chosen at random before, of each
// file that this client has uploaded or has kept with KeepSample. Witness returns a *WitnessError
// if it sees anything else than what was sent, and another error if it couldn't look. A hub may
// list a new SHA-256 over old bytes. KohakuHub does for a file of equal size that came from another
// branch:
// https://github.com/KohakuBlueleaf/KohakuHub/blob/2facb54/src/kohakuhub/api/commit/routers/operations.py#L220
//
// The other client has no time limit, no repeats, no limit for an answer, and no rule for where a
// token may go. So it never gets one: it talks to a gate on this machine, which sends its requests
// through ours, and passes on at most one byte more of a file than was sent. It keeps the list and
// the files that it reads whole in a new folder in dir ("" is the system's for temporary files),
// which Witness removes.
func (c *Client) Witness(ctx context.Context, dir, repo, commit string, sent []FileInfo,
	whole ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, witnessTime,
		errors.New("the look at what was published took too long"))
	defer cancel()
	dir, err := os.MkdirTemp(dir, names.Ours+"-witness-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g, err := c.openGate(ctx, repo, commit, sent)
	if err != nil {
		return err
	}
	defer g.close()
	other := gohf.New(repo).WithEndpoint(g.url).WithRevision(commit).WithCacheDir(dir)
	other.Verbosity, other.MaxParallelDownload = 0, 0
	w := &witness{Client: c, gate: g, other: other, seen: &WitnessError{Repo: repo, Commit: commit}}
	// its question about the repo knows no context, but ends with the gate
	stop := context.AfterFunc(ctx, g.close)
	defer stop()
	if err := w.look(ctx, sent, whole); err != nil {
		if cause := g.failed.Load(); cause != nil { // without addresses of this machine
			err = *cause
		}
		return cmp.Or(context.Cause(ctx), err)
	}
	if len(w.seen.Files) > 0 {
		slices.SortFunc(w.seen.Files,
			func(a, b WrongFile) int { return cmp.Compare(a.Path, b.Path) })
		return w.seen
	}
	return nil
}

// A witness is the other client at work.
type witness struct {
	*Client
	gate  *gate
	other *gohf.Repo

	mu   sync.Mutex
	seen *WitnessError
}

func (w *witness) differs(path, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Files = append(w.seen.Files, WrongFile{Path: path, Is: fmt.Sprintf(format, args...)})
}

// look compares the list, the whole files, and the ranges.
func (w *witness) look(ctx context.Context, sent []FileInfo, whole []string) error {
	listed := map[string]*gohf.FileInfo{}
	for f, err := range w.other.IterFileInfos() {
		if err != nil {
			return err
		}
		listed[f.Name] = f
	}
	// Its downloads lock files, and wait for a second or more if another one has the lock. So they
	// come first, one by one.
	var ranges []func(ctx context.Context) error
	for _, f := range sent {
		is := listed[f.Path]
		switch {
		case is == nil:
			w.seen.Files = append(w.seen.Files,
				WrongFile{Path: f.Path, Is: "isn't listed", Gone: true})
		case is.LFS != nil && (is.LFS.Size != f.Size || is.LFS.SHA256 != f.SHA256):
			w.differs(f.Path, "is listed with %d bytes and SHA-256 %s", is.LFS.Size, is.LFS.SHA256)
		case is.LFS == nil && is.Size > 0 && is.Size != f.Size: // hfd lists no sizes
			w.differs(f.Path, "is listed with %d bytes", is.Size)
		case is.LFS == nil && is.BlobID != "" && f.BlobID != "" && is.BlobID != f.BlobID:
			w.differs(f.Path, "is listed with git's hash %s", is.BlobID)
		case slices.Contains(whole, f.Path):
			if err := w.readWhole(ctx, f); err != nil {
				return err
			}
		default:
			if s, ok := w.samples.Load(f.SHA256); ok {
				address, err := w.other.FileURL(f.Path) // not safe for two goroutines
				if err != nil {
					return err
				}
				// it doesn't escape the path
				address = strings.TrimSuffix(address, f.Path) + (&url.URL{Path: f.Path}).EscapedPath()
				ranges = append(ranges, func(ctx context.Context) error {
					return w.readRange(ctx, f.Path, address, s.(sample))
				})
			}
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(witnessed)
	for _, read := range ranges {
		g.Go(func() error { return read(ctx) })
	}
	return g.Wait()
}

// readWhole downloads a small file and compares its hash. A file that differs is downloaded again:
// a bit may have changed on its way.
func (w *witness) readWhole(ctx context.Context, f FileInfo) error {
	n, sum, err := w.download(ctx, f.Path)
	if err == nil && sum != f.SHA256 {
		n, sum, err = w.download(ctx, f.Path)
	}
	switch {
	case err != nil:
		return err
	case n > f.Size: // the gate passed on no more
		w.differs(f.Path, "has more than %d bytes", f.Size)
	case sum != f.SHA256:
		w.differs(f.Path, "has other bytes")
	}
	return nil
}

// download returns the size and the SHA-256 of what the other client downloads, and removes it. It
// reads the download itself, not the link to it that the client makes at the end: on Windows only
// administrators and developers may make links.
func (w *witness) download(ctx context.Context, name string) (n int64, sum string, err error) {
	_, err = w.other.DownloadFileCtx(ctx, name)
	if link, is := errors.AsType[*os.LinkError](err); err != nil && !(is && link.Op == "symlink") {
		return 0, "", err
	}
	dir, err := w.other.CacheDir()
	if err != nil {
		return 0, "", err
	}
	blob := filepath.Join(dir, "blobs", downloadName(name))
	file, err := os.Open(blob)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n, err = io.Copy(h, file)
	err = errors.Join(err, file.Close(), os.Remove(blob)) // else it isn't fetched again
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// downloadName is the ETag that the other client sees, and by which it names its download. The
// hub's own might lead out of its folder.
func downloadName(path string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(path))) }

// readRange reads the range of a file that was sampled during its upload. Bytes that differ are
// read again, because no hash covers a range on its way. The other client knows the file's address,
// but can't read a part.
func (w *witness) readRange(ctx context.Context, path, address string, s sample) error {
	for range 2 {
		if equal, err := holds(ctx, path, address, s); equal || err != nil {
			return err
		}
	}
	w.differs(path, "has other bytes at %d", s.off)
	return nil
}

// holds reports whether the file at an address has the bytes of a sample.
func holds(ctx context.Context, path, address string, s sample) (equal bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", s.off, s.off+int64(len(s.data))-1))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPartialContent {
		return false, fmt.Errorf("read a range of %s: %s", path, resp.Status)
	}
	data, err := disk.ReadAll(resp.Body, int64(len(s.data))+1)
	if err != nil {
		return false, err
	}
	return bytes.Equal(data, s.data), nil
}

// A gate serves one commit of one repo on this machine, through our own requests. Other users of
// the machine can reach it too, so its address has a secret, without which it serves nothing.
type gate struct {
	*Client
	repo, commit string
	sizes        map[string]int64 // of the files, as they were sent
	url          string
	server       *http.Server
	failed       atomic.Pointer[error] // the first request that failed: later ones may follow from it
}

func (c *Client) openGate(ctx context.Context, repo, commit string, sent []FileInfo) (*gate,
	error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	secret := "/" + rand.Text()
	g := &gate{Client: c, repo: repo, commit: commit, sizes: map[string]int64{},
		url: "http://" + l.Addr().String() + secret}
	for _, f := range sent {
		g.sizes[f.Path] = f.Size
	}
	g.server = &http.Server{Handler: http.StripPrefix(secret, g), ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = g.server.Serve(l) }()
	return g, nil
}

func (g *gate) close() { _ = g.server.Close() }

// ServeHTTP passes on reads of the commit's list and of the files that were sent, and nothing else.
func (g *gate) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	path, isFile := strings.CutPrefix(in.URL.Path, "/"+g.repo+"/resolve/"+g.commit+"/")
	size, isSent := g.sizes[path]
	isFile = isFile && isSent
	isList := in.URL.Path == "/api/models/"+g.repo+"/revision/"+g.commit
	switch {
	case isFile && in.Method == http.MethodHead:
		g.head(out, in, path)
	case isFile && in.Method == http.MethodGet:
		g.file(out, in, path, size)
	case isList && in.Method == http.MethodGet:
		g.list(out, in)
	default:
		http.Error(out, "not of the commit that was published", http.StatusForbidden)
	}
}

// list answers with the commit and its files. The other client would take the rest of the hub's
// answer into memory too, whatever it is, and names a folder by the commit in it.
func (g *gate) list(out http.ResponseWriter, in *http.Request) {
	var doc struct {
		SHA      string          `json:"sha"`
		Siblings json.RawMessage `json:"siblings"`
	}
	r := g.infoRequest(g.repo, g.commit, "?blobs=true")
	_, err := g.t.call(in.Context(), r, &doc)
	if err == nil && doc.SHA != g.commit {
		err = g.t.errorf(r.op, ErrChanged, "asked for commit %s, answered with %q", g.commit,
			doc.SHA)
	}
	if err == nil { // their number has a limit
		err = json.Unmarshal(doc.Siblings, new(fileRows))
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(doc)
	}
	if err != nil {
		g.fail(out, err)
		return
	}
	_, _ = out.Write(data)
}

// head answers with a file's metadata. The other client takes no redirect for an answer.
func (g *gate) head(out http.ResponseWriter, in *http.Request, path string) {
	got, err := g.files.head(in.Context(), FileRef{Repo: g.repo, Commit: g.commit, Path: path})
	if err != nil {
		g.fail(out, err)
		return
	}
	h := out.Header()
	h.Set("ETag", strconv.Quote(downloadName(path)))
	h.Set(gohf.HeaderXRepoCommit, got.commit)
	h.Set("Content-Length", fmt.Sprint(got.size))
}

func (g *gate) fail(out http.ResponseWriter, err error) {
	g.failed.CompareAndSwap(nil, &err)
	http.Error(out, "", http.StatusBadGateway)
}

// file passes on a file, or a range of it, up to one byte more than was sent, which shows that it's
// longer.
func (g *gate) file(out http.ResponseWriter, in *http.Request, path string, size int64) {
	r := getRequest("read back "+g.repo, g.repo, g.t.endpoint.page(g.repo,
		revPath("resolve", g.commit)+"/"+escapePath(path)))
	r.follow, r.lane = followAll, "files"
	r.header = http.Header{"Accept-Encoding": {"identity"}}
	r.accept = func(*http.Response) error { return nil } // a file may be a web page
	if want := in.Header.Get("Range"); want != "" {
		r.header.Set("Range", want)
	}
	var resp *http.Response
	err := g.t.retry(in.Context(), r, func(ctx context.Context) (err error) {
		resp, err = g.t.exchange(ctx, r) //nolint:bodyclose // file closes it
		return err
	})
	if err != nil {
		g.fail(out, err)
		return
	}
	defer resp.Body.Close()
	limit := size + 1
	if resp.ContentLength >= 0 {
		out.Header().Set("Content-Length", fmt.Sprint(min(resp.ContentLength, limit)))
	}
	out.WriteHeader(resp.StatusCode)
	if _, err := io.CopyN(out, resp.Body, limit); err != nil && !errors.Is(err, io.EOF) {
		panic(http.ErrAbortHandler) // so that the other side sees a cut, not an end
	}
}
