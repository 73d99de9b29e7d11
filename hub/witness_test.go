package hub_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// odd is a path that an address must escape.
const odd = "the 1st #1, 50%/w.safetensors"

// TestWitness publishes a file, and then another one of the same size, and lets another client
// look. It sees what the server lists and stores, never the token, and says whether that's what was
// sent. It compares the bytes of files that this client has uploaded, and of those that it was
// shown elsewhere.
func TestWitness(t *testing.T) {
	bytesOf := func(seed uint64) []byte {
		b := make([]byte, 100_000)
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	type setting struct {
		ways  hubtest.Ways
		work  bool // the file is committed to another branch first
		spoil func(*hubtest.Server)
		// parts of the error; "" for none
		want  string
		wrong bool // what was published is at fault
	}
	always := func(path string, a hubtest.Action) func(*hubtest.Server) {
		return func(s *hubtest.Server) {
			s.Inject(hubtest.Fault{Host: hubtest.HostHub, Method: "GET", Path: path, Times: hubtest.Always, Action: a})
		}
	}
	for name, c := range map[string]setting{
		"as it is":             {},
		"by another branch":    {work: true},
		"KohakuHub":            {ways: hubtest.Servers["kohakuhub"]},
		"no sizes":             {ways: hubtest.Ways{NoSizes: true}},
		"old bytes":            {hubtest.Ways{OneRow: true}, true, nil, odd + " has other bytes at ", true},
		"a file is gone":       {spoil: func(s *hubtest.Server) { s.RemoveRepo(target); s.AddRepo(target, map[string][]byte{"x": nil}) }, want: "no such revision"},
		"the list is no JSON":  {spoil: always("*/revision/*", hubtest.Status(200, nil, "nonsense")), want: "it isn't JSON"},
		"the list is refused":  {spoil: always("*/revision/*", hubtest.Error(403, "", "no")), want: "403"},
		"the storage is wrong": {spoil: always("*/resolve/*", hubtest.Error(403, "", "no")), want: "403"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, hubtest.Start(t, hubtest.WithWays(c.ways)), 1000)
			w.srv.AddRepo(target, map[string][]byte{}, hubtest.Private())
			var sent []hub.FileInfo
			var commit, there hub.Commit
			for seed := range uint64(2) {
				parent, err := w.Head(t.Context(), target, "main")
				must(t, err)
				data, config := bytesOf(seed), bytes.Repeat([]byte("{}\n"), int(seed)+1)
				sent = []hub.FileInfo{{Path: odd, Size: int64(len(data)), SHA256: sum(data)}, {Path: "config.json", Size: int64(len(config)), SHA256: sum(config)}}
				ops, err := w.Upload(t.Context(), target, "main", hub.Blob{Path: odd, Size: sent[0].Size, SHA256: sent[0].SHA256, Reader: bytes.NewReader(data)})
				must(t, err)
				if c.work && seed > 0 {
					must(t, w.CreateBranch(t.Context(), target, "work", ""))
					head, err := w.Head(t.Context(), target, "work")
					must(t, err)
					there, err = w.Commit(t.Context(), target, "work", hub.CommitRequest{Summary: "x", Parent: head, Ops: ops})
					must(t, err)
				}
				commit, err = w.Commit(t.Context(), target, "main", hub.CommitRequest{Summary: "x", Parent: parent, Ops: append(ops, hub.FileOp("config.json", config))})
				must(t, err)
			}
			if c.spoil != nil {
				c.spoil(w.srv)
			}
			clients := []*hub.Client{w.Client}
			if c.work { // another process, which has seen the file on the other branch
				other := newWorldOn(t, w.srv, 1000).Client
				must(t, other.KeepSample(t.Context(), hub.FileRef{Repo: target, Commit: there.OID, Path: odd, Size: sent[0].Size, SHA256: sent[0].SHA256, NoCache: true}))
				clients = append(clients, other)
			}
			for i, client := range clients {
				err := client.Witness(t.Context(), t.TempDir(), target, commit.OID, sent, "config.json")
				_, wrong := errors.AsType[*hub.WitnessError](err)
				if (err != nil) != (c.want != "") || wrong != c.wrong || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("client %d: %v", i, err)
				}
			}
			// another result than what was sent is seen in the list
			if sent[0].SHA256, c.want = sum([]byte("x")), odd+" is listed with"; name == "as it is" {
				if err := w.Witness(t.Context(), t.TempDir(), target, commit.OID, sent, "config.json"); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("other bytes were sent: %v", err)
				}
			}
		})
	}
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// TestWitnessOfPlainFiles checks files that aren't in LFS, and that the other client doesn't read:
// other bytes of equal size have another hash in git.
func TestWitnessOfPlainFiles(t *testing.T) {
	w := newWorld(t, 100)
	w.srv.AddRepo(target, map[string][]byte{"README.md": []byte("new"), "config.json": []byte("{}")})
	hash := func(text string) string {
		h := hub.NewHash("git", int64(len(text)))
		h.Write([]byte(text))
		return fmt.Sprintf("%x", h.Sum(nil))
	}
	for text, want := range map[string]bool{"new": true, "old": false} {
		sent := []hub.FileInfo{{Path: "README.md", Size: 3, SHA256: sum([]byte(text)), BlobID: hash(text)}}
		err := w.Witness(t.Context(), t.TempDir(), target, w.srv.Head(target, "main"), sent)
		e, wrong := errors.AsType[*hub.WitnessError](err)
		if (err == nil) != want || wrong == want || wrong && (len(e.Files) != 1 || e.Files[0].Path != "README.md" || e.Files[0].Gone) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWitnessWithoutLinks checks a system that makes no links: the other client fails at its last
// step, and what it has downloaded is compared all the same.
func TestWitnessWithoutLinks(t *testing.T) {
	w := newWorld(t, 100)
	w.srv.AddRepo(target, map[string][]byte{"config.json": []byte("{}")})
	commit, dir := w.srv.Head(target, "main"), t.TempDir()
	removed := 0
	w.srv.Inject(hubtest.Fault{Host: hubtest.HostHub, Method: "GET", Path: "*/resolve/*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		snapshots, _ := filepath.Glob(filepath.Join(dir, "*", "*", "snapshots", commit))
		for _, folder := range snapshots { // so that there's no folder for the link
			removed++
			must(t, os.Remove(folder))
		}
		x.Next(x.ResponseWriter)
	}})
	for text, want := range map[string]bool{"{}": true, "[]": false} {
		err := w.Witness(t.Context(), dir, target, commit, []hub.FileInfo{{Path: "config.json", Size: 2, SHA256: sum([]byte(text))}}, "config.json")
		if _, wrong := errors.AsType[*hub.WitnessError](err); (err == nil) != want || wrong == want {
			t.Errorf("%s: %v", text, err)
		}
	}
	if removed == 0 {
		t.Error("it made its links")
	}
}

// TestWitnessOfALyingHub lets the Hub answer the other client with more than was sent, and with
// names that lead out of its folder. A file that's longer was published wrong; a list that can't be
// read says nothing. In no case is anything left, or written elsewhere, and the Hub can't send on.
func TestWitnessOfALyingHub(t *testing.T) {
	const most = 64 << 20
	var sent atomic.Int64
	endless := func(length string, begin string) hubtest.Action {
		return func(x *hubtest.Exchange) {
			if length != "" {
				x.Header().Set("Content-Length", length)
			}
			_, _ = x.Write([]byte(begin))
			for part := bytes.Repeat([]byte(" "), 1<<20); sent.Load() < most; {
				n, err := x.Write(part)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}
	}
	headers := func(h http.Header) hubtest.Action {
		return func(x *hubtest.Exchange) {
			r := httptest.NewRecorder()
			x.Next(r)
			maps.Copy(x.Header(), r.Header())
			maps.Copy(x.Header(), h)
			x.WriteHeader(r.Code)
		}
	}
	const outside = "../../../../outside"
	fault := func(method, path string, a hubtest.Action) func(*hubtest.Server) {
		return func(s *hubtest.Server) {
			s.Inject(hubtest.Fault{Host: hubtest.HostHub, Method: method, Path: path, Times: hubtest.Always, Action: a})
		}
	}
	described := func(key string, value any) func(*hubtest.Server) {
		return func(s *hubtest.Server) {
			s.Configure(target, hubtest.Described(func(info map[string]any) { info[key] = value }))
		}
	}
	for name, c := range map[string]struct {
		lie  func(*hubtest.Server)
		want error
		file string // what the other client sees of config.json
	}{
		"an endless file":         {lie: fault("GET", "*/resolve/*", endless("", "{}")), file: "has more than 3 bytes"},
		"a file of a long length": {lie: fault("GET", "*/resolve/*", endless(fmt.Sprint(most+2), "{}")), file: "has more than 3 bytes"},
		"a shorter file":          {lie: fault("GET", "*/resolve/*", hubtest.Status(200, nil, "{}")), file: "has other bytes"},
		"an endless list":         {lie: fault("GET", "*/revision/*", endless("", `{"siblings":[`)), want: hub.ErrTooLarge},
		"a list of nothings": {lie: func(s *hubtest.Server) {
			fault("GET", "*/revision/*", hubtest.Status(200, nil, `{"sha":"`+s.Head(target, "main")+`","siblings":[`+strings.Repeat("{},", 200_000)+`{}]}`))(s)
		}, want: hub.ErrTooLarge},
		"another commit":       {lie: described("sha", outside), want: hub.ErrChanged},
		"a path for an ETag":   {lie: fault("HEAD", "*", headers(http.Header{"Etag": {`"` + outside + `"`}, "X-Linked-Etag": {`"` + outside + `"`}}))},
		"tags of another form": {lie: described("tags", 7)}, // which the other client's type can't hold
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 100)
			w.srv.AddRepo(target, map[string][]byte{"config.json": []byte("{}\n")})
			commit := w.srv.Head(target, "main")
			c.lie(w.srv)
			sent.Store(0)
			base := t.TempDir()
			dir := filepath.Join(base, "downloads")
			must(t, os.Mkdir(dir, 0o700))
			err := w.Witness(t.Context(), dir, target, commit, []hub.FileInfo{{Path: "config.json", Size: 3, SHA256: sum([]byte("{}\n"))}}, "config.json")
			seen, wrong := errors.AsType[*hub.WitnessError](err)
			if wrong != (c.file != "") || wrong && (len(seen.Files) != 1 || seen.Files[0].Is != c.file) || !wrong && !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if n := sent.Load(); n >= most {
				t.Errorf("the Hub could send %d bytes", n)
			}
			for _, empty := range []string{base, dir} {
				there, err := os.ReadDir(empty)
				must(t, err)
				if len(there) > 0 && (empty == dir || len(there) > 1) {
					t.Errorf("%s holds %v", empty, there)
				}
			}
		})
	}
}

// TestWitnessOfARenamedRepo renames a repo after an upload. The storage has other bytes, and the
// other client reads a range of them under the new name too.
func TestWitnessOfARenamedRepo(t *testing.T) {
	w := newWorld(t, 100)
	w.srv.AddRepo(target, map[string][]byte{})
	data := pattern(50_000)
	ops, err := w.Upload(t.Context(), target, "main", hub.Blob{Path: weight, Size: int64(len(data)), SHA256: sum(data), Reader: bytes.NewReader(data)})
	must(t, err)
	commit, err := w.Commit(t.Context(), target, "main", hub.CommitRequest{Summary: "x", Parent: w.srv.Head(target, "main"), Ops: ops})
	must(t, err)
	sent := []hub.FileInfo{{Path: weight, Size: int64(len(data)), SHA256: sum(data)}}
	w.srv.Rename(target, "me/renamed")
	must(t, w.Witness(t.Context(), t.TempDir(), "me/renamed", commit.OID, sent))
	w.srv.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		r := httptest.NewRecorder()
		x.Next(r)
		maps.Copy(x.Header(), r.Header())
		x.WriteHeader(r.Code)
		_, _ = x.Write(make([]byte, r.Body.Len()))
	}})
	err = w.Witness(t.Context(), t.TempDir(), "me/renamed", commit.OID, sent)
	if seen, ok := errors.AsType[*hub.WitnessError](err); !ok || len(seen.Files) != 1 || seen.Files[0].Path != weight {
		t.Errorf("got %v", err)
	}
}
