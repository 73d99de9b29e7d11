package hub

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

// repoGet is the request for an API read about a repo; rest is already escaped.
func (t *transport) repoGet(op, repo, rest string) *request {
	return get(op, repo, t.endpoint.api(repo, rest))
}

// repoSend is the request for an API call about a repo with a JSON body.
func (t *transport) repoSend(op, repo, method, rest string, body any) *request {
	return send(op, repo, method, t.endpoint.api(repo, rest), body)
}

// call makes one API request with retries and decodes its JSON answer into out, unless out is nil. It gives the
// answer's headers.
func (t *transport) call(ctx context.Context, r *request, out any) (header http.Header, err error) {
	err = t.retry(ctx, r, func(ctx context.Context) (err error) {
		header, err = t.once(ctx, r, out)
		return err
	})
	return header, err
}

// once is call without retries.
func (t *transport) once(ctx context.Context, r *request, out any) (http.Header, error) {
	resp, err := t.exchange(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if out == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, maxIgnored) // lets the connection be used again
		return resp.Header, nil
	}
	if err := decode(resp.Body, out); err != nil {
		return nil, t.failure(r, resp.Request.URL, err)
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
