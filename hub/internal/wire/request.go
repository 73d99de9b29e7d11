package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/df11-convert/df11-convert/internal/disk"
)

// Request is one thing to ask, repeatable: its body can be opened again.
type Request struct {
	Op     string // for errors: "read model info of ns/name"
	Needs  string // the right that it takes: "write access to ns/name"; "" is what its method says
	Finds  bool   // asks whether the repo is there: a 404 without a code says that it is not
	Repo   string // empty if the request is about no repo
	Method string
	URL    string
	Header http.Header
	Body   func() io.Reader // nil for none
	Size   int64            // exact length of the body
	Bulk   bool             // file bytes: throttled, noticed
	Follow followRule
	Token  bool          // send the token if the hop is on the hub
	Slow   time.Duration // time to the headers if longer than usual
	// of a transfer, given back after each try; nil for a request that needs none
	Slot *Slot
}

// needs is the right that the request takes, in words.
func (r *Request) needs() string {
	right := "write"
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		right = "read"
	}
	return cmp.Or(r.Needs, right+" access to "+cmp.Or(r.Repo, "it"))
}

// followRule says which redirects a request follows. That of API reads is 0: no other origin may
// answer for the hub.
type followRule int

const (
	_ followRule = iota
	// FollowAll is for a GET of file bytes.
	FollowAll
	// FollowRelative is for a HEAD of metadata: an absolute Location is the answer.
	FollowRelative
	// FollowSame is for bodies: 307 and 308 only, and no other origin but for file bytes.
	FollowSame
)

// Get is the request for an API read.
func Get(op, repo, url string) *Request {
	return &Request{Op: op, Repo: repo, Method: http.MethodGet, URL: url, Token: true}
}

// Send is the request for an API call with a JSON body.
func Send(op, repo, method, url string, body any) *Request {
	data, err := json.Marshal(body)
	if err != nil {
		panic("wire: internal error: " + err.Error()) // bodies are made of strings and numbers
	}
	return &Request{Op: op, Repo: repo, Method: method, URL: url, Token: true, Follow: FollowSame,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   func() io.Reader { return bytes.NewReader(data) }, Size: int64(len(data))}
}

const (
	// maxJSON caps an API answer, so that none exceeds the least memory budget. The largest that
	// are known: 300 bytes for each file of a repo's info, and 700 for each of the 10,000 part
	// links that an upload may have.
	maxJSON    = 16 << 20
	maxIgnored = 1 << 20 // caps an answer of which only the status counts
)

// RepoGet is the request for an API read about a repo; rest is already escaped.
func (t *Transport) RepoGet(op, repo, rest string) *Request {
	return Get(op, repo, t.Endpoint.API(repo, rest))
}

// RepoSend is the request for an API call about a repo with a JSON body.
func (t *Transport) RepoSend(op, repo, method, rest string, body any) *Request {
	return Send(op, repo, method, t.Endpoint.API(repo, rest), body)
}

// Call makes one API request with retries and decodes its JSON answer into out, unless out is nil.
// It gives the answer's headers.
func (t *Transport) Call(ctx context.Context, r *Request, out any) (header http.Header, err error) {
	err = t.Retry(ctx, r, func(ctx context.Context) (err error) {
		header, err = t.Once(ctx, r, out)
		return err
	})
	return header, err
}

// Once is call without retries.
func (t *Transport) Once(ctx context.Context, r *Request, out any) (http.Header, error) {
	resp, err := t.Exchange(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if out == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, maxIgnored) // lets the connection be used again
		return resp.Header, nil
	}
	if err := decode(resp.Body, out); err != nil {
		return nil, t.Failure(r, resp.Request.URL, err)
	}
	return resp.Header, nil
}

// decode reads a JSON body. It tells one that was cut, which is worth a repeat, from one that no
// hub would send.
func decode(body io.Reader, out any) error {
	data, err := disk.ReadAll(body, maxJSON)
	if _, ok := errors.AsType[*disk.TooLargeError](err); ok {
		return fmt.Errorf("%w: an answer of more than %d MiB", ErrTooLarge, maxJSON>>20)
	}
	if err != nil {
		return err
	}
	if err = json.Unmarshal(data, out); err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok &&
		syntax.Offset >= int64(len(data)) {
		return fmt.Errorf("answer is cut: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%w: %w", ErrNotHub, err)
}
