package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const lfsJSON = "application/vnd.git-lfs+json"

// lfsAction is one thing that the hub wants done for an object.
type lfsAction struct {
	Href   string                     `json:"href"`
	Header map[string]json.RawMessage `json:"header"`
}

// text reads a header value; numbers are taken as they are written.
func (a *lfsAction) text(key string) string {
	raw := a.Header[key]
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// lfsObject is the hub's answer about one object.
type lfsObject struct {
	OID     string `json:"oid"`
	Size    int64  `json:"size"`
	Actions *struct {
		Upload *lfsAction `json:"upload"`
		Verify *lfsAction `json:"verify"`
	} `json:"actions"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// stored says that the hub has the object and wants nothing.
func (o *lfsObject) stored() bool { return o.Actions == nil || o.Actions.Upload == nil }

// batch asks where an object is to go. It is asked for each file just before
// its upload, because the links it gives live only minutes.
func (c *Client) batch(ctx context.Context, repo, rev string, b Blob) (*lfsObject, error) {
	body := map[string]any{
		"operation": "upload", "transfers": []string{"basic", "multipart"}, "hash_algo": "sha256",
		"objects": []any{map[string]any{"oid": b.SHA256, "size": b.Size}},
	}
	if !strings.HasPrefix(rev, "refs/") && !b.PullRequest {
		body["ref"] = map[string]string{"name": rev}
	}
	r := c.send("ask where to upload "+b.Path, repo, http.MethodPost,
		c.Endpoint()+"/"+escapePath(repo)+".git/info/lfs/objects/batch", body)
	r.header = http.Header{"Accept": {lfsJSON}, "Content-Type": {lfsJSON}}
	var answer batchAnswer
	var obj *lfsObject
	_, err := c.callAnd(ctx, r, &answer, func() (err error) {
		obj, err = c.object(r, &answer, b)
		answer = batchAnswer{} // the next one is decoded into a clean value
		return err
	})
	return obj, err
}

type batchAnswer struct {
	Transfer string      `json:"transfer"`
	Objects  []lfsObject `json:"objects"`
}

// object finds a blob in the answer. The hub may refuse an object, for good or
// for now, inside an answer 200.
func (c *Client) object(r *request, answer *batchAnswer, b Blob) (*lfsObject, error) {
	at := slices.IndexFunc(answer.Objects, func(o lfsObject) bool { return strings.EqualFold(o.OID, b.SHA256) })
	if at < 0 {
		return nil, c.errorf(r.op, ErrNotHub, "the answer does not name the object")
	}
	obj := &answer.Objects[at]
	if obj.Error != nil {
		return nil, c.objectError(r, obj)
	}
	if !obj.stored() && answer.Transfer != "" && answer.Transfer != "basic" && answer.Transfer != "multipart" {
		return nil, c.errorf(r.op, ErrNotHub, "the hub insists on transfer %q", oneLine(answer.Transfer))
	}
	return obj, nil
}

// objectError is the refusal of one object inside an answer 200.
func (c *Client) objectError(r *request, o *lfsObject) error {
	e := c.errorf(r.op, nil, "%s", oneLine(o.Error.Message))
	e.Status, e.Repo, e.TokenSource = o.Error.Code, r.repo, c.opt.TokenSource
	e.Method, e.URL = r.method, redact(r.url)
	if u, err := parseVerbatim(r.url); err == nil {
		e.wait.lane = c.t.quota(u)
	}
	e.Err = classify(e)
	return e
}

// parts are the links of a multipart upload, in order.
type parts struct {
	chunk int64
	urls  []string
}

// readParts reads chunk_size and the numbered links from an upload action; nil
// when the action asks for a single PUT.
func readParts(a *lfsAction, size int64) (*parts, error) {
	if _, ok := a.Header["chunk_size"]; !ok {
		return nil, nil
	}
	chunk, err := strconv.ParseInt(a.text("chunk_size"), 10, 64)
	if err != nil || chunk <= 0 {
		return nil, fmt.Errorf("%w: chunk_size is %q", ErrNotHub, oneLine(a.text("chunk_size")))
	}
	byNumber := map[int64]string{}
	for key := range a.Header {
		if n, err := strconv.ParseUint(key, 10, 31); err == nil {
			byNumber[int64(n)] = a.text(key)
		}
	}
	want := (size + chunk - 1) / chunk
	if int64(len(byNumber)) != want {
		return nil, fmt.Errorf("%w: %d part links for %d parts", ErrNotHub, len(byNumber), want)
	}
	p := &parts{chunk: chunk}
	for n := range want {
		link, ok := byNumber[n+1]
		if !ok {
			return nil, fmt.Errorf("%w: part link %d is missing", ErrNotHub, n+1)
		}
		p.urls = append(p.urls, link)
	}
	return p, nil
}

// Duplicate names a large file that another repo on the same hub stores.
type Duplicate struct {
	Path    string
	SHA256  string
	XetHash string // from Tree; files without one cannot be duplicated
}

// maxDuplicates is the hub's limit per call.
const maxDuplicates = 500

// DuplicateFiles makes the hub copy large files from one repo's store to
// another's, without moving their bytes; commit LFSOps for them afterwards. It
// gives the reason for each file that could not be copied, by sha256: upload
// those, and all of them on an error.
func (c *Client) DuplicateFiles(ctx context.Context, source, target string, files []Duplicate) (failed map[string]string, err error) {
	if err := checkRepo(source); err != nil {
		return nil, err
	}
	failed = map[string]string{}
	for chunk := range slices.Chunk(files, maxDuplicates) {
		if err := c.duplicate(ctx, source, target, chunk, failed); err != nil {
			return nil, err
		}
	}
	return failed, nil
}

func (c *Client) duplicate(ctx context.Context, source, target string, files []Duplicate, failed map[string]string) error {
	var rows []map[string]string
	for _, f := range files {
		if f.XetHash == "" {
			failed[f.SHA256] = "the source does not store it in Xet"
			continue
		}
		rows = append(rows, map[string]string{"xetHash": f.XetHash, "sha256": f.SHA256, "filename": f.Path})
	}
	if len(rows) == 0 {
		return nil
	}
	r := c.send("copy files from "+source+" to "+target, source, http.MethodPost, c.apiURL(source, "/lfs-files/duplicate"),
		map[string]any{"target": map[string]string{"type": "model", "name": target}, "files": rows})
	r.slow = slowAnswer
	var answer struct {
		Failed []struct {
			SHA256 string          `json:"sha256"`
			Error  json.RawMessage `json:"error"`
		} `json:"failed"`
	}
	if _, err := c.call(ctx, r, &answer); err != nil {
		return err
	}
	for _, f := range answer.Failed {
		failed[f.SHA256] = oneLine(string(f.Error))
	}
	return nil
}
