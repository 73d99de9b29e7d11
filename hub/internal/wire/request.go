package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/df11-convert/df11-convert/internal/disk"
)

// A Request can be repeated: its body can be opened again.
type Request struct {
	Op     string // for errors: "read model info of ns/name"
	Finds  bool   // asks whether the repo exists: a 404 without a code says that it doesn't
	Repo   string // empty if the request is about no repo
	Lane   string // of the requests with a rate limit of their own: "files", "commit"
	Method string
	URL    string
	Header http.Header
	Body   func() io.Reader // nil for none
	Size   int64            // exact length of the body
	Bulk   bool             // file bytes: throttled and counted
	Follow followRule
	Token  bool          // send the token if the hop is on the hub
	Slow   time.Duration // time until the headers, if longer than usual
	// NoRepeat asks once only, although the failure may be temporary
	NoRepeat bool
	// refuses a success with the wrong content; nil accepts all but web pages
	Accept func(*http.Response) error
}

// A followRule says which redirects a request follows. API reads follow none away from the hub: no
// other origin may answer for it.
type followRule int

const (
	_ followRule = iota
	// FollowAll is for a GET of file bytes.
	FollowAll
	// FollowRelative is for a HEAD of metadata: an absolute Location is the answer.
	FollowRelative
	// FollowSame is for bodies: 307 and 308 only, and none to another origin.
	FollowSame
	// FollowStorage is FollowSame for a PUT of file bytes. If its link is the hub's own, the hub may
	// send it on to a storage, as hfd does with 307 to a signed link of S3, and the request's header
	// stays at the hub:
	// https://github.com/matrixhub-ai/hfd/blob/c4fdaa7/pkg/backend/lfs/handler_git_lfs.go#L95
	FollowStorage
)

// Get returns the request for an API read.
func Get(op, repo, url string) *Request {
	return &Request{Op: op, Repo: repo, Method: http.MethodGet, URL: url, Token: true}
}

// Send returns the request for an API call with a JSON body.
func Send(op, repo, method, url string, body any) *Request {
	data, err := json.Marshal(body)
	if err != nil {
		panic("wire: internal error: " + err.Error()) // bodies hold strings and numbers only
	}
	return &Request{Op: op, Repo: repo, Method: method, URL: url, Token: true, Follow: FollowSame,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   func() io.Reader { return bytes.NewReader(data) }, Size: int64(len(data))}
}

const (
	// maxJSON limits an API answer to less than the least memory budget. The largest known answers
	// have 300 bytes per file of a repo's info, and 700 for each of an upload's 10,000 part links.
	maxJSON    = 16 << 20
	maxIgnored = 1 << 20 // limits an answer whose body isn't used
)

// RepoGet returns the request for an API read about a repo. rest is already escaped.
func (t *Transport) RepoGet(op, repo, rest string) *Request {
	return Get(op, repo, t.Endpoint.API(repo, rest))
}

// RepoSend returns the request for an API call about a repo with a JSON body.
func (t *Transport) RepoSend(op, repo, method, rest string, body any) *Request {
	return Send(op, repo, method, t.Endpoint.API(repo, rest), body)
}

// Call makes an API request with retries, decodes its JSON answer into out unless out is nil, and
// returns the answer's headers.
func (t *Transport) Call(ctx context.Context, r *Request, out any) (header http.Header, err error) {
	err = t.Retry(ctx, r, func(ctx context.Context) (err error) {
		header, err = t.Once(ctx, r, out)
		return err
	})
	return header, err
}

// Once makes one attempt of a call, for a caller that repeats it itself.
func (t *Transport) Once(ctx context.Context, r *Request, out any) (http.Header, error) {
	resp, err := t.exchange(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if out == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, maxIgnored) // so that the connection can be used again
	} else if err := decode(resp.Body, out); err != nil {
		return nil, t.Failure(r, resp.Request.URL, err)
	}
	t.Opt.Governor.reached(resp.Request.URL.Host)
	return resp.Header, nil
}

// decode reads a JSON body. A cut body is worth a repeat; JSON that no hub would send isn't.
func decode(body io.Reader, out any) error {
	data, err := disk.ReadAll(body, maxJSON)
	if _, ok := errors.AsType[*disk.TooLargeError](err); ok {
		return fmt.Errorf("%w: an answer of more than %d MiB", ErrTooLarge, maxJSON>>20)
	}
	if err != nil {
		return err
	}
	switch string(bytes.TrimSpace(data)) {
	case "": // from a proxy or a firewall: every answer of a hub that's read has a body
		return errEmpty
	case "null": // which would decode to an empty list
		return fmt.Errorf("%w: it's null", ErrNotHub)
	}
	if err = json.Unmarshal(data, out); err == nil {
		return nil
	}
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	kind, isType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case isSyntax && syntax.Offset >= int64(len(data)):
		return errCut
	case isSyntax:
		return fmt.Errorf("%w: it isn't JSON", ErrNotHub)
	case isType && kind.Field != "":
		return fmt.Errorf("%w: its %s is of the type %s", ErrNotHub, kind.Field, kind.Value)
	case isType:
		return fmt.Errorf("%w: it's JSON of the type %s", ErrNotHub, kind.Value)
	}
	return fmt.Errorf("%w: %w", ErrNotHub, err)
}
