package hub

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

func testBlob(n int) (Blob, []byte) {
	data := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
	return Blob{Path: "m.safetensors", Size: int64(n), SHA256: sha(data), Reader: bytes.NewReader(data)}, data
}

func TestUpload(t *testing.T) {
	for _, tt := range []struct {
		name  string
		chunk int
		size  int
		log   string
	}{
		{"single PUT", 0, 100, "[preupload batch put verify]"},
		{"one part", 100, 100, "[preupload batch part 1 complete verify]"},
		{"three parts", 40, 100, "[preupload batch part 1 part 2 part 3 complete verify]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newStoreHub(t)
			h.chunk = tt.chunk
			c, _ := testClient(t, h)
			b, data := testBlob(tt.size)
			op, err := c.Upload(t.Context(), "a/b", "main", b)
			if err != nil || op.kind != opLFS || op.SHA256 != b.SHA256 || !bytes.Equal(h.stored[b.SHA256], data) {
				t.Fatalf("%+v, %v", op, err)
			}
			slices.Sort(h.log[2 : 2+h.count("part")])
			if fmt.Sprint(h.log) != tt.log {
				t.Errorf("steps %v", h.log)
			}
			if op, err = c.Upload(t.Context(), "a/b", "main", b); err != nil || op.kind != opLFS || h.count("put")+h.count("part") > 3 {
				t.Errorf("second time: %v, %v", h.log, err)
			}
		})
	}
}

func TestUploadModes(t *testing.T) {
	b, data := testBlob(100)
	for _, tt := range []struct {
		name, mode, there string
		check             func(Op, error) bool
	}{
		{"regular", "regular", "", func(o Op, err error) bool { return err == nil && o.Payload() == 100 && o.kind != opLFS }},
		{"regular, unchanged", "regular", gitBlobHash(data), func(o Op, err error) bool { return err == nil && o.kind == opNone }},
		{"lfs, unchanged", "lfs", b.SHA256, func(o Op, err error) bool { return err == nil && o.kind == opNone && o.SHA256 == b.SHA256 }},
		{"unknown mode", "xet", "", func(_ Op, err error) bool { return errors.Is(err, wire.ErrNotHub) }},
	} {
		h := newStoreHub(t)
		h.mode, h.there = tt.mode, tt.there
		c, _ := testClient(t, h)
		if op, err := c.Upload(t.Context(), "a/b", "main", b); !tt.check(op, err) || h.count("batch") > 0 {
			t.Errorf("%s: %+v, %v, %v", tt.name, op, err, h.log)
		}
	}
}

func TestEmptyFileIsRegular(t *testing.T) {
	h := newStoreHub(t)
	c, _ := testClient(t, h)
	op, err := c.Upload(t.Context(), "a/b", "main", Blob{Path: "m.safetensors", SHA256: sha(nil), Reader: bytes.NewReader(nil)})
	if err != nil || op.kind == opLFS || op.kind == opNone || h.count("batch") != 0 {
		t.Errorf("%+v, %v", op, err)
	}
}

func TestRegularFileIsHashed(t *testing.T) {
	h := newStoreHub(t)
	h.mode = "regular"
	c, _ := testClient(t, h)
	b, _ := testBlob(100)
	b.SHA256 = shaA
	if _, err := c.Upload(t.Context(), "a/b", "main", b); !errors.Is(err, wire.ErrCorrupt) {
		t.Error(err)
	}
}

// TestCompletionThatWorkedIsFound: the answer got lost, and the upload id is gone, or the hub fails over it for ever; the next
// batch call tells that the object is there.
func TestCompletionThatWorkedIsFound(t *testing.T) {
	for _, status := range []int{404, 500} {
		h := newStoreHub(t)
		h.chunk = 40
		b, data := testBlob(100)
		h.fault = func(s string, _ int) *http.Response {
			if s == "complete" {
				h.stored[b.SHA256] = data
				return reply(nil, status, `{"error":"no such upload"}`)
			}
			return nil
		}
		c, _ := testClient(t, h)
		if op, err := c.Upload(t.Context(), "a/b", "main", b); err != nil || op.kind != opLFS || h.count("batch") != 2 || h.count("part") != 3 {
			t.Errorf("%d: %v, %v", status, h.log, err)
		}
	}
}

func TestUploadRefusals(t *testing.T) {
	b, _ := testBlob(100)
	object := func(inner string) string {
		return `{"objects":[{"oid":"` + b.SHA256 + `","size":100,` + inner + `}]}`
	}
	for _, tt := range []struct {
		name, answer string
		want         error
	}{
		{"object error right", object(`"error":{"code":403,"message":"no"}`), wire.ErrForbidden},
		{"object error repo", object(`"error":{"code":404,"message":"no"}`), wire.ErrNotFound},
		{"wrong part numbers", object(`"actions":{"upload":{"href":"https://s3.test/x","header":{"chunk_size":"50","00001":"https://s3.test/1","00003":"https://s3.test/3"}}}`), wire.ErrNotHub},
		{"another object", `{"objects":[{"oid":"` + shaA + `","size":1}]}`, wire.ErrNotHub},
		{"nothing", `{}`, wire.ErrNotHub},
		{"xet", `{"transfer":"xet",` + object(`"actions":{"upload":{"href":"https://s3.test/x"}}`)[1:], wire.ErrNotHub},
	} {
		h := newStoreHub(t)
		h.fault = func(s string, _ int) *http.Response {
			if s == "batch" {
				return reply(nil, 200, tt.answer)
			}
			return nil
		}
		c, _ := testClient(t, h)
		if _, err := c.Upload(t.Context(), "a/b", "main", b); !errors.Is(err, tt.want) || h.count("batch") != 1 || h.count("put") != 0 {
			t.Errorf("%s: %v, %v", tt.name, h.log, err)
		}
	}
}

// TestABlobIsNeverReadAfterUpload: the connection may still want to send the body of a request that has its answer. The
// reader is the caller's again then, who may have closed it.
func TestABlobIsNeverReadAfterUpload(t *testing.T) {
	h := newStoreHub(t)
	var bodies []io.Reader
	for _, answer := range []func(*http.Request) (*http.Response, error){says(413, ""), breaks(syscall.ENOSPC)} {
		w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPut {
				return h.RoundTrip(r)
			}
			bodies = append(bodies, r.Body)
			return answer(r)
		}}
		c, _ := testClient(t, w)
		b, _ := testBlob(50)
		data := &countingReaderAt{ReaderAt: b.Reader}
		b.Reader = data
		if _, err := c.Upload(t.Context(), "a/b", "main", b); err == nil {
			t.Fatal("the upload went well")
		}
		before := data.n
		n, err := bodies[len(bodies)-1].Read(make([]byte, 10))
		if n != 0 || err == nil || errors.Is(err, io.EOF) || data.n != before {
			t.Errorf("%d bytes, %v, %d reads", n, err, data.n-before)
		}
	}
}

// countingReaderAt counts how often it is read.
type countingReaderAt struct {
	io.ReaderAt
	n int
}

func (r *countingReaderAt) ReadAt(p []byte, off int64) (int, error) {
	r.n++
	return r.ReaderAt.ReadAt(p, off)
}

// TestMissingETagIsNeverBlamedOnTheHub: a storage that forgets ETags for ever
// is repeated like any other fault of its own, and named in the end.
func TestMissingETagIsNeverBlamedOnTheHub(t *testing.T) {
	h := newStoreHub(t)
	h.chunk = 100
	h.fault = func(s string, _ int) *http.Response {
		if s == "part 1" {
			return reply(nil, 200, "")
		}
		return nil
	}
	c, _ := testClient(t, h)
	b, _ := testBlob(100)
	_, err := c.Upload(t.Context(), "a/b", "main", b)
	if errors.Is(err, wire.ErrNotHub) || !errors.Is(err, wire.ErrNoETag) || h.count("part") < 8 || strings.Contains(Hint(err), "proxy") {
		t.Errorf("%d parts sent, %v; %s", h.count("part"), err, Hint(err))
	}
}

func TestBatchBody(t *testing.T) {
	b, _ := testBlob(100)
	for rev, ref := range map[string]bool{"main": true, "df11-convert/x": true, "refs/pr/3": false} {
		h := newStoreHub(t)
		c, _ := testClient(t, h)
		if _, err := c.Upload(t.Context(), "a/b", rev, b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(h.batched), `"ref":{"name":"`+rev+`"}`); got != ref {
			t.Errorf("%s: body %s", rev, h.batched)
		}
		if !strings.Contains(string(h.batched), `"hash_algo":"sha256"`) || strings.Contains(string(h.batched), "xet") {
			t.Errorf("body %s", h.batched)
		}
	}
}

func TestDuplicateFiles(t *testing.T) {
	var body string
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		return reply(r, 200, `{"failed":[{"sha256":"s2","error":{"message":"other region"}}]}`), nil
	}}
	c, _ := testClient(t, w)
	failed, err := c.DuplicateFiles(t.Context(), "a/src", "b/dst", []FileInfo{{Path: "x", SHA256: "s1", XetHash: "h1"}, {Path: "y", SHA256: "s2", XetHash: "h2"}, {Path: "z", SHA256: "s3"}})
	if err != nil || len(failed) != 2 || !strings.Contains(failed["s2"], "region") || failed["s3"] == "" {
		t.Errorf("%v, %v", failed, err)
	}
	if w.Seen[0].URL.Path != "/api/models/a/src/lfs-files/duplicate" || !strings.Contains(body, `"target":{"name":"b/dst","type":"model"}`) {
		t.Error(w.Seen[0].URL.Path, body)
	}
}
