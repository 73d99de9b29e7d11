package hub

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// storeHub is a hub and its storage in one handler, for one object.
type storeHub struct {
	t      *testing.T
	mode   string // upload mode that preupload answers
	there  string // oid that preupload answers
	chunk  int    // part size, 0 for a single PUT
	verify bool

	mu      sync.Mutex
	stored  map[string][]byte
	parts   map[int][]byte
	round   int // of batch calls; links of an older round are refused
	log     []string
	fault   func(step string, n int) *http.Response // step: "put", "part 2", "complete", "verify", "batch"
	nth     map[string]int
	batched []byte
}

func newStoreHub(t *testing.T) *storeHub {
	return &storeHub{t: t, mode: "lfs", stored: map[string][]byte{}, parts: map[int][]byte{}, nth: map[string]int{}, verify: true}
}

func (h *storeHub) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if r.ContentLength != int64(len(body)) {
		h.t.Errorf("%s: Content-Length %d for %d bytes", r.URL, r.ContentLength, len(body))
	}
	if r.URL.Host == "s3.test" && r.Header.Get("Authorization") != "" {
		h.t.Error("token sent to the storage")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	step := h.step(r)
	h.nth[step]++
	h.log = append(h.log, step)
	if h.fault != nil {
		if resp := h.fault(step, h.nth[step]); resp != nil {
			resp.Request = r
			return resp, nil
		}
	}
	return h.answer(r, step, body), nil
}

func (h *storeHub) step(r *http.Request) string {
	switch {
	case strings.Contains(r.URL.Path, "/preupload/"):
		return "preupload"
	case strings.HasSuffix(r.URL.Path, "/objects/batch"):
		return "batch"
	case r.URL.Query().Get("part") != "":
		return "part " + r.URL.Query().Get("part")
	}
	return strings.TrimPrefix(r.URL.Path, "/")
}

func (h *storeHub) answer(r *http.Request, step string, body []byte) *http.Response {
	if r.URL.Host == "s3.test" && r.URL.Query().Get("round") != fmt.Sprint(h.round) {
		return reply(r, 403, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
	}
	switch {
	case step == "preupload":
		return reply(r, 200, fmt.Sprintf(`{"files":[{"path":"m.safetensors","uploadMode":"%s","oid":"%s"}]}`, h.mode, h.there))
	case step == "batch":
		return reply(r, 200, h.batch(body))
	case step == "put":
		h.stored[sha(body)] = body
		return reply(r, 200, "")
	case strings.HasPrefix(step, "part "):
		var n int
		fmt.Sscanf(step, "part %d", &n)
		h.parts[n] = body
		return reply(r, 200, "", fmt.Sprintf(`ETag: "e%d"`, n))
	case step == "complete":
		return h.complete(r, body)
	case step == "verify":
		return reply(r, 200, "")
	}
	return reply(r, 404, "")
}

func (h *storeHub) batch(body []byte) string {
	h.batched = body
	var ask struct {
		Objects []struct {
			OID  string
			Size int
		}
	}
	if err := json.Unmarshal(body, &ask); err != nil || len(ask.Objects) != 1 {
		h.t.Errorf("batch body %s", body)
	}
	o := ask.Objects[0]
	if _, ok := h.stored[o.OID]; ok {
		return fmt.Sprintf(`{"objects":[{"oid":"%s","size":%d}]}`, o.OID, o.Size)
	}
	h.round++
	clear(h.parts)
	actions := map[string]any{"upload": map[string]any{"href": fmt.Sprintf("https://s3.test/put?round=%d", h.round)}}
	if h.chunk > 0 {
		header := map[string]string{"chunk_size": fmt.Sprint(h.chunk)}
		for n := 1; (n-1)*h.chunk < o.Size; n++ {
			header[fmt.Sprintf("%05d", n)] = fmt.Sprintf("https://s3.test/put?round=%d&part=%d", h.round, n)
		}
		actions["upload"] = map[string]any{"href": "https://huggingface.co/complete", "header": header}
	}
	if h.verify {
		actions["verify"] = map[string]any{"href": "https://huggingface.co/verify"}
	}
	answer, _ := json.Marshal(map[string]any{"objects": []any{map[string]any{"oid": o.OID, "size": o.Size, "actions": actions}}})
	return string(answer)
}

func (h *storeHub) complete(r *http.Request, body []byte) *http.Response {
	var ask struct {
		OID   string
		Parts []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := json.Unmarshal(body, &ask); err != nil {
		h.t.Error(err)
	}
	var all []byte
	for i, p := range ask.Parts {
		if p.PartNumber != i+1 || p.ETag != fmt.Sprintf(`"e%d"`, i+1) {
			return reply(r, 400, `{"error":"bad part"}`)
		}
		all = append(all, h.parts[p.PartNumber]...)
	}
	if sha(all) != ask.OID {
		return reply(r, 400, `{"error":"bad hash"}`)
	}
	h.stored[ask.OID] = all
	return reply(r, 200, "whatever")
}

func (h *storeHub) count(step string) (n int) {
	for _, s := range h.log {
		if s == step || strings.HasPrefix(s, step+" ") {
			n++
		}
	}
	return n
}
