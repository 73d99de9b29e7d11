package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

func testBlob(n int) (Blob, []byte) {
	data := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
	return Blob{Path: "m.safetensors", Size: int64(n), SHA256: sha(data), Reader: bytes.NewReader(data)}, data
}

// oneObject is a hub that answers the questions of an upload. put answers for the storage.
func oneObject(mode, batch string, put func(*http.Request) (*http.Response, error)) *scripted {
	return &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		switch {
		case strings.Contains(r.URL.Path, "/preupload/"):
			return reply(r, 200, `{"files":[{"path":"m.safetensors","uploadMode":"`+mode+`"}]}`), nil
		case strings.HasSuffix(r.URL.Path, "/objects/batch"):
			return reply(r, 200, batch), nil
		}
		return put(r)
	}}
}

func TestUploadModes(t *testing.T) {
	b, _ := testBlob(100)
	b.SHA256 = shaA
	// a small file is hashed once more
	for mode, want := range map[string]error{"xet": wire.ErrNotHub, "regular": wire.ErrCorrupt} {
		w := oneObject(mode, "", says(500, ""))
		c, _ := testClient(t, w)
		if _, err := c.Upload(t.Context(), "a/b", "main", b); !errors.Is(err, want) || w.Count() != 1 {
			t.Errorf("%s: %d requests, %v", mode, w.Count(), err)
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
	} {
		w := oneObject("lfs", tt.answer, says(500, ""))
		c, _ := testClient(t, w)
		if _, err := c.Upload(t.Context(), "a/b", "main", b); !errors.Is(err, tt.want) || w.Count() != 2 {
			t.Errorf("%s: %d requests, %v", tt.name, w.Count(), err)
		}
	}
}

// TestABlobIsNeverReadAfterUpload checks a connection that still wants to send the body after the
// answer. The reader then belongs to the caller, who may have closed it.
func TestABlobIsNeverReadAfterUpload(t *testing.T) {
	var bodies []io.Reader
	for _, answer := range []func(*http.Request) (*http.Response, error){says(413, ""), breaks(syscall.ENOSPC)} {
		b, _ := testBlob(50)
		w := oneObject("lfs", `{"objects":[{"oid":"`+b.SHA256+`","size":50,"actions":{"upload":{"href":"https://s3.test/x"}}}]}`,
			func(r *http.Request) (*http.Response, error) {
				bodies = append(bodies, r.Body)
				return answer(r)
			})
		c, _ := testClient(t, w)
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

// countingReaderAt counts its reads.
type countingReaderAt struct {
	io.ReaderAt
	n int
}

func (r *countingReaderAt) ReadAt(p []byte, off int64) (int, error) {
	r.n++
	return r.ReaderAt.ReadAt(p, off)
}

func TestDuplicateFiles(t *testing.T) {
	var body string
	w := &scripted{Answer: func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		return reply(r, 200, `{"failed":[{"sha256":"s2","error":{"message":"other region"}}]}`), nil
	}}
	c, _ := testClient(t, w)
	failed, err := c.DuplicateFiles(t.Context(), "a/src", "b/dst", []FileInfo{{Path: "x", SHA256: "s1", XetHash: "h1"}, {Path: "y", SHA256: "s2", XetHash: "h2"}})
	if err != nil || len(failed) != 1 || !failed["s2"] {
		t.Errorf("%v, %v", failed, err)
	}
	if w.Seen[0].URL.Path != "/api/models/a/src/lfs-files/duplicate" || !strings.Contains(body, `"target":{"name":"b/dst","type":"model"}`) {
		t.Error(w.Seen[0].URL.Path, body)
	}
}

// first returns the result of uploading one file.
func first(ops []Op, err error) (Op, error) {
	if err != nil {
		return Op{}, err
	}
	return ops[0], nil
}

// TestManyFilesAreAskedForTogether checks that files of one call share their questions, and that
// refused links are asked for again together.
func TestManyFilesAreAskedForTogether(t *testing.T) {
	var asked []string
	refused := map[string]bool{}
	w := &scripted{}
	w.Answer = func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		var q struct {
			Files   []struct{ Path string }
			Objects []struct{ OID string }
		}
		switch {
		case r.Method == http.MethodPut:
			if key := r.URL.Path; strings.HasSuffix(key, "0") && !refused[key] {
				refused[key] = true
				return reply(r, 403, "<Error><Code>AccessDenied</Code></Error>"), nil
			}
			return reply(r, 200, ""), nil
		case json.Unmarshal(body, &q) != nil:
			t.Fatalf("%s", body)
		}
		asked = append(asked, fmt.Sprint(len(q.Files), len(q.Objects)))
		var answers []string
		for _, f := range q.Files {
			answers = append(answers, fmt.Sprintf(`{"path":%q,"uploadMode":"lfs"}`, f.Path))
		}
		if q.Files != nil {
			return reply(r, 200, `{"files":[`+strings.Join(answers, ",")+`]}`), nil
		}
		for _, o := range q.Objects {
			answers = append(answers, fmt.Sprintf(`{"oid":%q,"actions":{"upload":{"href":"https://cdn.test/%s"}}}`, o.OID, o.OID))
		}
		return reply(r, 200, `{"objects":[`+strings.Join(answers, ",")+`]}`), nil
	}
	c, _ := testClient(t, w, oneTransfer)
	var files []Blob
	for i := range 20 {
		files = append(files, Blob{Path: fmt.Sprint("f", i), Size: 6 << 20, Reader: zeros{}, SHA256: fmt.Sprintf("%064d", i)})
	}
	files = append(files, files[0])
	files[20].Path = "the same again"
	ops, err := c.Upload(t.Context(), "a/b", "main", files...)
	if want := "[21 0 0 20 0 20]"; err != nil || len(ops) != len(files) || ops[20].Path != "the same again" || fmt.Sprint(asked) != want {
		t.Errorf("asked for %v, want %s; %d ops, %v", asked, want, len(ops), err)
	}
}
