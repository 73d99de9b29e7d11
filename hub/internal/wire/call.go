package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/df11-convert/df11-convert/internal/smallfile"
)

const (
	// maxJSON caps an API answer, so that none exceeds the least memory budget. The largest that are known: 300 bytes for each
	// file of a repo's info, and 700 for each of the 10,000 part links that an upload may have.
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

// Call makes one API request with retries and decodes its JSON answer into out, unless out is nil. It gives the
// answer's headers.
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

// decode reads a JSON body. It tells one that was cut, which is worth a repeat, from one that no hub would send.
func decode(body io.Reader, out any) error {
	data, err := smallfile.All(body, maxJSON)
	if _, ok := errors.AsType[*smallfile.TooLargeError](err); ok {
		return fmt.Errorf("%w: an answer of more than %d MiB", ErrTooLarge, maxJSON>>20)
	}
	if err != nil {
		return err
	}
	if err = json.Unmarshal(data, out); err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && syntax.Offset >= int64(len(data)) {
		return fmt.Errorf("answer is cut: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%w: %w", ErrNotHub, err)
}
