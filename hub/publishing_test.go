package hub_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// published is a world with an empty target repo.
func published(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 100)
	created, err := w.CreateRepo(t.Context(), target, nil)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	w.srv.ResetLog()
	return w
}

func blob(path string, data []byte) hub.Blob {
	return hub.Blob{Path: path, Size: int64(len(data)), SHA256: shared.Sum(data), Reader: bytes.NewReader(data)}
}

// push uploads and commits one file.
func (w *world) push(t *testing.T, path string, data []byte) (hub.Commit, error) {
	t.Helper()
	op, err := first(w.Upload(t.Context(), target, "main", blob(path, data)))
	if err != nil {
		return hub.Commit{}, err
	}
	return w.Client.Commit(t.Context(), target, "main", hub.CommitRequest{Parent: w.srv.Head(target, "main"), Summary: "add " + path, Ops: []hub.Op{op}})
}

// holds checks a published file.
func (w *world) holds(t *testing.T, path string, data []byte) {
	t.Helper()
	got, err := w.srv.ReadFile(target, "main", path)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%s: %d bytes, %v", path, len(got), err)
	}
}

func (w *world) nPuts() int    { return w.srv.Count("PUT", "*") }
func (w *world) nBatches() int { return w.srv.Count("POST", "*.git/info/lfs/objects/batch") }
func (w *world) nCommits() int { return w.srv.Count("POST", "/api/models/*/commit/*") }

func TestPublish(t *testing.T) {
	w := published(t)
	small, single, multi := []byte(`{"x": 1}`), pattern(15_000), pattern(50_000)
	var ops []hub.Op
	for path, data := range map[string][]byte{"config.json": small, "a.safetensors": single, "b/c.safetensors": multi, "empty.txt": {}} {
		op, err := first(w.Upload(t.Context(), target, "main", blob(path, data)))
		must(t, err)
		ops = append(ops, op)
	}
	head, err := w.Head(t.Context(), target, "main")
	must(t, err)
	done, err := w.Client.Commit(t.Context(), target, "main", hub.CommitRequest{Summary: "s", Parent: head, Ops: ops})
	if err != nil || done.OID != w.srv.Head(target, "main") {
		t.Fatalf("%+v, %v", done, err)
	}
	w.holds(t, "config.json", small)
	w.holds(t, "a.safetensors", single)
	w.holds(t, "b/c.safetensors", multi)
	w.holds(t, "empty.txt", nil)
	if w.nPuts() != 1+7 || w.nBatches() != 2 {
		t.Errorf("%d PUTs, %d batch calls", w.nPuts(), w.nBatches())
	}
	again, err := w.push(t, "b/c.safetensors", multi)
	if err != nil || again.OID != w.srv.Head(target, "main") || w.nPuts() != 8 {
		t.Errorf("a file that the store holds: %+v, %v, %d PUTs", again, err, w.nPuts())
	}
	sent := int64(0)
	for _, r := range w.srv.Requests() {
		if r.Method == "PUT" {
			sent += r.Received
		}
	}
	if sent != 65_000 {
		t.Errorf("%d bytes were sent", sent)
	}
}

// TestManyFilesAreAskedForTogether checks that files of one call share their questions, and that
// refused links are asked for again together.
func TestManyFilesAreAskedForTogether(t *testing.T) {
	w := published(t)
	var files []hub.Blob
	for i := range 20 {
		files = append(files, blob(fmt.Sprint(i, weight), pattern(10_000+i)))
	}
	files = append(files, files[0])
	files[20].Path = "again" + weight
	w.srv.Inject(hubtest.Fault{Name: "put-expired", Times: 2})
	ops, err := w.Upload(t.Context(), target, "main", files...)
	if err != nil || len(ops) != 21 || ops[20].Path != files[20].Path {
		t.Fatalf("%+v, %v", ops, err)
	}
	if asked := w.srv.Count("POST", "*/preupload/*"); asked != 1 || w.nBatches() != 2 || w.nPuts() != 22 {
		t.Errorf("%d and %d questions, %d PUTs", asked, w.nBatches(), w.nPuts())
	}
}

// TestOddAnswersToACommit checks that the branch decides whether a commit was made, whatever the
// answer is, and that it's made once.
func TestOddAnswersToACommit(t *testing.T) {
	ok, html := hubtest.Status(200, nil, "{}"), hubtest.Status(200, nil, "<html>")
	n := 0
	for _, tt := range []struct {
		name   string
		answer hubtest.Action
		posts  int
		want   error // nil is success
	}{
		{"success that names no commit", ok, 1, hub.ErrNotHub},
		{"the same, after applying", hubtest.After(ok), 1, nil},
		{"success of something else", hubtest.Status(200, nil, `{"commitOid":"main"}`), 1, hub.ErrNotHub},
		{"the same, after applying", hubtest.After(html), 1, nil},
		{"400", hubtest.Status(400, nil, `{"error":"bad path"}`), 1, errAny},
		{"413", hubtest.Status(413, nil, ""), 1, errAny},
		{"lands while it is repeated", func(x *hubtest.Exchange) {
			if n++; n == 1 {
				hubtest.Status(504, nil, "")(x)
			} else {
				hubtest.After(hubtest.Status(412, nil, ""))(x)
			}
		}, 2, nil},
	} {
		w := published(t)
		w.srv.Inject(hubtest.Fault{Name: "odd", Path: "/api/models/*/commit/*", Times: tt.posts, Action: tt.answer})
		done, err := w.push(t, weight, pattern(100))
		if (err == nil) != (tt.want == nil) || !errors.Is(tt.want, errAny) && !errors.Is(err, tt.want) || w.nCommits() != tt.posts {
			t.Errorf("%s: %d posts, %v", tt.name, w.nCommits(), err)
		}
		if err == nil && (done.OID != w.srv.Head(target, "main") || len(w.srv.Commits(target, "main")) != 2) {
			t.Errorf("%s: %+v, %d commits", tt.name, done, len(w.srv.Commits(target, "main"))-1)
		}
	}
}

// TestTwoCommitsAtOnce checks that the slower of two writers hears at once that the branch moved,
// whatever status refuses its parent, although both sent files.
func TestTwoCommitsAtOnce(t *testing.T) {
	for _, server := range []string{"hub", "kohakuhub", "git"} {
		w := newWorldOn(t, hubtest.Start(t, hubtest.WithWays(hubtest.Servers[server])), 100)
		if _, err := w.CreateRepo(t.Context(), target, nil); err != nil {
			t.Fatal(err)
		}
		parent := w.srv.Head(target, "main")
		for i, want := range []error{nil, hub.ErrConflict} {
			op, err := first(w.Upload(t.Context(), target, "main", blob(fmt.Sprint(i, weight), pattern(15_000+i))))
			if err == nil {
				_, err = w.Client.Commit(t.Context(), target, "main", hub.CommitRequest{Parent: parent, Summary: "s", Ops: []hub.Op{op}})
			}
			if !errors.Is(err, want) {
				t.Errorf("%s, writer %d: %v", server, i, err)
			}
		}
		if waited := w.clock.Waited(); waited > 0 || w.nCommits() != 2 {
			t.Errorf("%s: %d commits were tried, waited %v", server, w.nCommits(), waited)
		}
	}
}

// TestUploadIsSentOn uploads to a hub that sends a PUT on to its storage. The storage gets all bytes, but
// not the token that the hub put into its own link, and the hub gets none of the bytes. Another
// status than 307 and 308 is refused.
func TestUploadIsSentOn(t *testing.T) {
	ways := hubtest.Servers["git"]
	ways.SendsOn = true
	w := newWorldOn(t, hubtest.Start(t, hubtest.WithWays(ways)), 100)
	if _, err := w.CreateRepo(t.Context(), target, nil); err != nil {
		t.Fatal(err)
	}
	data := pattern(3 << 20) // more than systems buffer
	if _, err := w.push(t, weight, data); err != nil {
		t.Fatal(err)
	}
	w.holds(t, weight, data)
	sent := map[hubtest.Host]int64{}
	for _, q := range w.srv.Requests() {
		if q.Method != "PUT" {
			continue
		}
		sent[q.Host] += q.Received
		if token := q.Header.Get("Authorization") != ""; token != (q.Host == hubtest.HostHub) {
			t.Errorf("%s %s: Authorization: %v", q.Host, q.Path, token)
		}
	}
	if len(sent) != 2 || sent[hubtest.HostHub] > 0 || sent[hubtest.HostCDN] != int64(len(data)) {
		t.Errorf("bytes received by the hub and its storage: %v", sent)
	}
	w.srv.Inject(hubtest.Fault{Name: "found", Method: "PUT", Path: "*/lfs/objects/*", Times: hubtest.Always,
		Action: hubtest.Status(302, hubtest.Header{"Location": w.srv.CDNURL}, "")})
	if _, err := w.push(t, "other.safetensors", pattern(5000)); !errors.Is(err, hub.ErrNotHub) {
		t.Errorf("302: %v", err)
	}
}

// TestCompletionThatWorkedIsFound checks a completion whose answer got lost and whose upload id is
// gone. The next batch call says that the object is there.
func TestCompletionThatWorkedIsFound(t *testing.T) {
	w := published(t)
	w.srv.Inject(hubtest.Fault{Name: "lost", Path: "/api/complete_multipart", Times: hubtest.Always, Action: hubtest.After(hubtest.Status(404, nil, ""))})
	if _, err := w.push(t, weight, pattern(50_000)); err != nil || w.nBatches() != 2 || w.nPuts() != 7 {
		t.Errorf("%d batch calls, %d PUTs, %v", w.nBatches(), w.nPuts(), err)
	}
}
