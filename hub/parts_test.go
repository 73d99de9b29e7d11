package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// linkHub takes multipart uploads of any number of files, over links that live
// for a while by the bubble's clock. Its line is the client's LimitRate.
type linkHub struct {
	lifetime time.Duration
	chunk    int

	mu      sync.Mutex
	batches int
	parts   map[string]map[int][]byte // by upload
	stored  map[string][]byte
	early   func(r *http.Request, n int) *http.Response // decides before the body is read
	puts    []time.Time                                 // begin of each PUT
}

func newLinkHub(lifetime time.Duration) *linkHub {
	return &linkHub{lifetime: lifetime, chunk: 1000, parts: map[string]map[int][]byte{}, stored: map[string][]byte{}}
}

func (h *linkHub) RoundTrip(r *http.Request) (*http.Response, error) {
	begun := time.Now()
	q := r.URL.Query()
	n, _ := strconv.Atoi(q.Get("partNumber"))
	if r.Method == http.MethodPut {
		h.mu.Lock()
		h.puts = append(h.puts, begun)
		h.mu.Unlock()
		if h.early != nil {
			if resp := h.early(r, n); resp != nil {
				return resp, r.Context().Err()
			}
		}
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch path := r.URL.Path; {
	case strings.Contains(path, "/preupload/"):
		var ask struct{ Files []struct{ Path string } }
		_ = json.Unmarshal(body, &ask)
		return reply(r, 200, fmt.Sprintf(`{"files":[{"path":%q,"uploadMode":"lfs"}]}`, ask.Files[0].Path)), nil
	case strings.HasSuffix(path, "/objects/batch"):
		return reply(r, 200, h.batch(body)), nil
	case path == "/complete":
		return h.complete(r, q.Get("uploadId"), body), nil
	case path == "/verify":
		return reply(r, 200, ""), nil
	}
	if expires, _ := strconv.ParseInt(q.Get("Expires"), 10, 64); !begun.Before(time.Unix(expires, 0)) {
		return reply(r, 403, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"), nil
	}
	h.parts[q.Get("uploadId")][n] = body
	return reply(r, 200, "", fmt.Sprintf(`ETag: "e%d"`, n)), nil
}

func (h *linkHub) batch(body []byte) string {
	var ask struct {
		Objects []struct {
			OID  string
			Size int
		}
	}
	_ = json.Unmarshal(body, &ask)
	o := ask.Objects[0]
	if _, ok := h.stored[o.OID]; ok {
		return fmt.Sprintf(`{"objects":[{"oid":"%s","size":%d}]}`, o.OID, o.Size)
	}
	h.batches++
	id := fmt.Sprintf("%s-%d", o.OID, h.batches)
	if h.parts[id] == nil {
		h.parts[id] = map[int][]byte{}
	}
	header := map[string]string{"chunk_size": strconv.Itoa(h.chunk)}
	for n := 1; (n-1)*h.chunk < o.Size; n++ {
		header[fmt.Sprintf("%05d", n)] = fmt.Sprintf("https://s3.test/put?partNumber=%d&uploadId=%s&Expires=%d", n, id, time.Now().Add(h.lifetime).Unix())
	}
	answer, _ := json.Marshal(map[string]any{"objects": []any{map[string]any{"oid": o.OID, "size": o.Size, "actions": map[string]any{
		"upload": map[string]any{"href": "https://hub.test/complete?uploadId=" + id, "header": header},
		"verify": map[string]any{"href": "https://hub.test/verify"}}}}})
	return string(answer)
}

func (h *linkHub) complete(r *http.Request, id string, body []byte) *http.Response {
	var ask struct{ Parts []completedPart }
	_ = json.Unmarshal(body, &ask)
	var all []byte
	for i := range ask.Parts {
		all = append(all, h.parts[id][i+1]...)
	}
	if oid, _, _ := strings.Cut(id, "-"); sha(all) == oid {
		h.stored[oid] = all
		return reply(r, 200, "{}")
	}
	return reply(r, 400, `{"error":"InvalidPart"}`)
}

// uploadAll sends files of n bytes each at once, over a line of 1000 bytes a second.
func (h *linkHub) uploadAll(t *testing.T, nFiles, n int) (errs []error) {
	t.Helper()
	c, _ := testClient(t, h, realTime, func(o *Options) { o.LimitRate, o.RangeBytes, o.BufferBytes = 1000, 1<<20, 4<<20 })
	errs = make([]error, nFiles)
	var group sync.WaitGroup
	for i := range errs {
		data := bytes.Repeat([]byte{byte(i + 1)}, n)
		group.Go(func() {
			_, errs[i] = c.Upload(t.Context(), "a/b", "main", Blob{Path: fmt.Sprintf("f%d", i), Size: int64(n), SHA256: sha(data), Reader: bytes.NewReader(data)})
			h.mu.Lock()
			defer h.mu.Unlock()
			if errs[i] == nil && !bytes.Equal(h.stored[sha(data)], data) {
				t.Error("the storage holds other bytes")
			}
		})
	}
	group.Wait()
	return errs
}

// TestFilesArriveOverALineTooThinToShare: files of 40 s each have links for a minute. Together none is done in time; after the
// first refusal they go one by one, and all arrive.
func TestFilesArriveOverALineTooThinToShare(t *testing.T) {
	for _, n := range []int{2, 4} {
		synctest.Test(t, func(t *testing.T) {
			h := newLinkHub(time.Minute)
			start := time.Now()
			for i, err := range h.uploadAll(t, n, 40_000) {
				if err != nil {
					t.Errorf("file %d: %v", i, err)
				}
			}
			if took, most := time.Since(start), time.Duration(n+3)*40*time.Second; h.batches > 2*n || took > most {
				t.Errorf("%d files: %d batch calls, %v", n, h.batches, took)
			}
		})
	}
}

// TestAFileThatCannotBeDoneInTimeEnds: alone, and still too slow for its links. The hint says so.
func TestAFileThatCannotBeDoneInTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLinkHub(time.Minute)
		err := h.uploadAll(t, 1, 200_000)[0]
		if err == nil || !strings.Contains(Hint(err), "a slow line") || h.batches != maxRounds {
			t.Errorf("%d batch calls, %v; %s", h.batches, err, Hint(err))
		}
	})
}

// TestARefusedLinkNeverCutsOffASiblingsAnswer: while one link is refused, the
// storage asks the next part to wait. Nothing is sent before that time is over.
func TestARefusedLinkNeverCutsOffASiblingsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLinkHub(time.Hour)
		var once [3]sync.Once
		var limited time.Time
		h.early = func(r *http.Request, n int) (resp *http.Response) {
			switch n {
			case 1:
				once[1].Do(func() {
					time.Sleep(100 * time.Millisecond)
					resp = reply(r, 403, "<Error><Code>AccessDenied</Code></Error>")
				})
			case 2:
				once[2].Do(func() {
					limited = time.Now()
					resp = reply(r, 429, "", "Retry-After: 40")
					select { // the answer is on its way
					case <-time.After(time.Second):
					case <-r.Context().Done():
					}
				})
			}
			return resp
		}
		if errs := h.uploadAll(t, 1, 4000); errs[0] != nil {
			t.Fatal(errs[0])
		}
		early := 0
		for _, put := range h.puts {
			if put.After(limited) && put.Before(limited.Add(40*time.Second)) {
				early++
			}
		}
		if limited.IsZero() || early > 0 {
			t.Errorf("%d parts were sent before the 40 s were over", early)
		}
	})
}
