package hub

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

// A request can be repeated: its body can be opened again.
type request struct {
	op     string // for errors: "read model info of ns/name"
	finds  bool   // asks whether the repo exists: a 404 without a code says that it doesn't
	repo   string // empty if the request is about no repo
	lane   string // of the requests with a rate limit of their own: "files", "commit"
	method string
	url    string
	header http.Header
	body   func() io.Reader // nil for none
	size   int64            // exact length of the body
	bulk   bool             // file bytes: throttled and counted
	follow followRule
	token  bool          // send the token if the hop is on the hub
	slow   time.Duration // time until the headers, if longer than usual
	// noRepeat asks once only, although the failure may be temporary
	noRepeat bool
	// refuses a success with the wrong content; nil accepts all but web pages
	accept func(*http.Response) error
}

// A followRule says which redirects a request follows. API reads follow none away from the hub: no
// other origin may answer for it.
type followRule int

const (
	_ followRule = iota
	// followAll is for a GET of file bytes.
	followAll
	// followRelative is for a HEAD of metadata: an absolute Location is the answer.
	followRelative
	// followSame is for bodies: 307 and 308 only, and none to another origin.
	followSame
	// followStorage is followSame for a PUT of file bytes. If its link is the hub's own, the hub
	// may send it on to a storage, as hfd does with 307 to a signed link of S3, and the request's
	// header stays at the hub:
	// https://github.com/matrixhub-ai/hfd/blob/c4fdaa7/pkg/backend/lfs/handler_git_lfs.go#L95
	followStorage
)

// getRequest returns the request for an API read.
func getRequest(op, repo, url string) *request {
	return &request{op: op, repo: repo, method: http.MethodGet, url: url, token: true}
}

// sendRequest returns the request for an API call with a JSON body.
func sendRequest(op, repo, method, url string, body any) *request {
	data, err := json.Marshal(body)
	if err != nil {
		panic("hub: internal error: " + err.Error()) // bodies hold strings and numbers only
	}
	return &request{op: op, repo: repo, method: method, url: url, token: true, follow: followSame,
		header: http.Header{"Content-Type": {"application/json"}},
		body:   func() io.Reader { return bytes.NewReader(data) }, size: int64(len(data))}
}

const (
	// maxJSON limits an API answer to less than the least memory budget. The largest known answers
	// have 300 bytes per file of a repo's info, and 700 for each of an upload's 10,000 part links.
	maxJSON    = 16 << 20
	maxIgnored = 1 << 20 // limits an answer whose body isn't used
)

// repoGet returns the request for an API read about a repo. rest is already escaped.
func (t *transport) repoGet(op, repo, rest string) *request {
	return getRequest(op, repo, t.endpoint.api(repo, rest))
}

// repoSend returns the request for an API call about a repo with a JSON body.
func (t *transport) repoSend(op, repo, method, rest string, body any) *request {
	return sendRequest(op, repo, method, t.endpoint.api(repo, rest), body)
}

// call makes an API request with retries, decodes its JSON answer into out unless out is nil, and
// returns the answer's headers.
func (t *transport) call(ctx context.Context, r *request, out any) (header http.Header, err error) {
	err = t.retry(ctx, r, func(ctx context.Context) (err error) {
		header, err = t.callOnce(ctx, r, out)
		return err
	})
	return header, err
}

// callOnce makes one attempt of a call, for a caller that repeats it itself.
func (t *transport) callOnce(ctx context.Context, r *request, out any) (http.Header, error) {
	resp, err := t.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if out == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, maxIgnored) // so that the connection can be used again
	} else if err := decode(resp.Body, out); err != nil {
		return nil, t.failure(r, resp.Request.URL, err)
	}
	t.opt.Governor.reached(resp.Request.URL.Host)
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
