package hub

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

func testBlob(n int) (Blob, []byte) {
	data := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
	return Blob{Path: "m.safetensors", Size: int64(n), SHA256: world.Sum(data), Reader: bytes.NewReader(data)}, data
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

func TestUploadRefusals(t *testing.T) {
	b, _ := testBlob(100)
	object := func(inner string) string {
		return `{"objects":[{"oid":"` + b.SHA256 + `","size":100,` + inner + `}]}`
	}
	for _, tt := range []struct {
		name, mode, answer string
		want               error
		requests           int
	}{
		{"object error right", "lfs", object(`"error":{"code":403,"message":"no"}`), ErrForbidden, 2},
		{"object error repo", "lfs", object(`"error":{"code":404,"message":"no"}`), ErrNotFound, 2},
		{"wrong part numbers", "lfs", object(`"actions":{"upload":{"href":"https://s3.test/x","header":{"chunk_size":"50","00001":"https://s3.test/1","00003":"https://s3.test/3"}}}`), ErrNotHub, 2},
		{"another object", "lfs", `{"objects":[{"oid":"` + shaA + `","size":1}]}`, ErrNotHub, 2},
		{"nothing", "lfs", `{}`, ErrNotHub, 2},
		{"another mode", "xet", "", ErrNotHub, 1},
		{"a small file of another hash", "regular", "", ErrCorrupt, 1},
	} {
		w := oneObject(tt.mode, tt.answer, says(500, ""))
		c, _ := testClient(t, w)
		sent := b
		if tt.mode == "regular" {
			sent.SHA256 = shaA
		}
		if _, err := c.Upload(t.Context(), "a/b", "main", sent); !errors.Is(err, tt.want) || w.Count() != tt.requests {
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

// TestOtherBytesThanTheirHash checks that bytes with another hash are sent once. A storage takes
// them, and the Hub then says only that it doesn't have the object, or refuses the parts.
func TestOtherBytesThanTheirHash(t *testing.T) {
	for name, tt := range map[string]struct {
		upload string
		end    func(*http.Request) (*http.Response, error)
	}{
		"one PUT": {`{"href":"https://s3.test/x"},"verify":{"href":"https://hub.test/verify"}`, says(404, "Object was not uploaded")},
		"parts":   {`{"href":"https://hub.test/complete","header":{"chunk_size":"60","1":"https://s3.test/1","2":"https://s3.test/2"}}`, says(400, "wrong sha256")},
	} {
		b, _ := testBlob(100)
		b.SHA256 = strings.Repeat("0", 64)
		w := oneObject("lfs", `{"objects":[{"oid":"`+b.SHA256+`","size":100,"actions":{"upload":`+tt.upload+`}}]}`,
			func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPut {
					answer := reply(r, 200, "")
					answer.Header.Set("ETag", `"x"`)
					return answer, nil
				}
				return tt.end(r)
			})
		c, _ := testClient(t, w)
		_, err := c.Upload(t.Context(), "a/b", "main", b)
		puts := 0
		for _, r := range w.Seen {
			if r.Method == http.MethodPut {
				puts++
			}
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "expected 0000") || puts > 2 {
			t.Errorf("%s: %d PUTs, %v", name, puts, err)
		}
	}
}

// TestPartsNeedAnETag checks a proxy that removes the header of which the parts are joined. Nothing
// is sent twice, and no completion is asked for.
func TestPartsNeedAnETag(t *testing.T) {
	b, _ := testBlob(100)
	w := oneObject("lfs", `{"objects":[{"oid":"`+b.SHA256+`","size":100,"actions":{"upload":{"href":"https://hub.test/complete",
		"header":{"chunk_size":"60","1":"https://s3.test/1","2":"https://s3.test/2"}}}}]}`, says(200, ""))
	c, _ := testClient(t, w)
	_, err := c.Upload(t.Context(), "a/b", "main", b)
	if !errors.Is(err, ErrNotHub) || !strings.Contains(err.Error(), "no ETag") || Hint(err) != hint.NoETag.String() {
		t.Error(err, Hint(err))
	}
	seen := map[string]int{}
	for _, r := range w.Seen {
		seen[r.URL.Path]++
	}
	if seen["/1"] > 1 || seen["/2"] > 1 || seen["/1"]+seen["/2"] == 0 || seen["/complete"] > 0 {
		t.Error(seen)
	}
}

// TestWrongBlobs checks that a blob that can't be uploaded is the caller's mistake.
func TestWrongBlobs(t *testing.T) {
	for name, change := range map[string]func(*Blob){
		"size": func(b *Blob) { b.Size = -50 }, "reader": func(b *Blob) { b.Reader = nil }, "hash": func(b *Blob) { b.SHA256 = "x" },
	} {
		b, _ := testBlob(100)
		change(&b)
		w := oneObject("lfs", "", says(500, ""))
		c, _ := testClient(t, w)
		if _, err := c.Upload(t.Context(), "a/b", "main", b); !errors.Is(err, ErrArgument) || w.Count() != 0 {
			t.Errorf("%s: %d requests, %v", name, w.Count(), err)
		}
	}
}

// TestReaderThatAnswersEOFWithItsLastBytes checks that an upload takes what io.ReaderAt allows, at
// the end of any read: EOF and the bytes together.
func TestReaderThatAnswersEOFWithItsLastBytes(t *testing.T) {
	for _, n := range []int{1, 100, rangeBytes, 3000} {
		for range 20 { // the sample is at another place each time
			b, _ := testBlob(n)
			b.Reader = eagerReaderAt{b.Reader, b.Size}
			w := oneObject("lfs", `{"objects":[{"oid":"`+b.SHA256+`","size":`+strconv.Itoa(n)+`}]}`, says(500, ""))
			c, _ := testClient(t, w)
			if _, err := c.Upload(t.Context(), "a/b", "main", b); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
	}
}

// eagerReaderAt answers io.EOF together with the last bytes.
type eagerReaderAt struct {
	io.ReaderAt
	size int64
}

func (r eagerReaderAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	if err == nil && off+int64(n) == r.size {
		err = io.EOF
	}
	return n, err
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
