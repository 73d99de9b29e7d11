package hub

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"syscall/js"
)

// hidesRedirects reports whether the sender follows redirects unseen.
const hidesRedirects = true

// browser sends requests with the browser's fetch, which follows redirects itself. An answer's
// Request has the address it came from. If a request goes on to another origin, fetch drops its
// token. It sends no cookies. The transport of net/http would do as well, but makes the page's
// program 700 kB larger.
type browser struct{}

func newRoundTripper(*Governor) http.RoundTripper { return browser{} }

func (browser) RoundTrip(req *http.Request) (*http.Response, error) {
	headers, abort := map[string]any{}, js.Global().Get("AbortController").New()
	for name := range req.Header {
		// the browser's own: https://fetch.spec.whatwg.org/#forbidden-request-header
		if name != "User-Agent" && name != "Accept-Encoding" {
			headers[name] = req.Header.Get(name)
		}
	}
	options := map[string]any{
		"method": req.Method, "headers": headers, "credentials": "omit", "cache": "no-store",
		"referrerPolicy": "no-referrer",
		"signal":         abort.Get("signal"),
	}
	if req.Body != nil {
		return nil, errors.New("a page only reads")
	}
	answer, err := await(req.Context().Done(), abort,
		js.Global().Call("fetch", req.URL.String(), options))
	if err != nil {
		return nil, err
	}
	return response(req, answer, abort)
}

// response converts a fetch's answer. Its body is read as it arrives.
func response(req *http.Request, answer, abort js.Value) (*http.Response, error) {
	final := *req
	var err error
	if final.URL, err = url.Parse(answer.Get("url").String()); err != nil {
		return nil, errBadURL
	}
	resp := &http.Response{StatusCode: answer.Get("status").Int(), Header: http.Header{},
		ContentLength: -1, Request: &final, Body: http.NoBody}
	add := js.FuncOf(func(_ js.Value, args []js.Value) any {
		resp.Header.Add(args[1].String(), args[0].String())
		return nil
	})
	defer add.Release()
	answer.Get("headers").Call("forEach", add)
	if n, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); err == nil &&
		resp.Header.Get("Content-Encoding") == "" {
		resp.ContentLength = n
	}
	if body := answer.Get("body"); !body.IsNull() {
		resp.Body = &fetched{done: req.Context().Done(), abort: abort, from: body.Call("getReader")}
	}
	return resp, nil
}

// fetched is the body of an answer.
type fetched struct {
	done        <-chan struct{}
	abort, from js.Value
	rest        js.Value // a Uint8Array, read up to used
	used        int
}

func (b *fetched) Read(p []byte) (int, error) {
	for b.rest.IsUndefined() || b.used == b.rest.Length() {
		piece, err := await(b.done, b.abort, b.from.Call("read"))
		if err != nil {
			return 0, err
		}
		if piece.Get("done").Bool() {
			return 0, io.EOF
		}
		b.rest, b.used = piece.Get("value"), 0
	}
	n := js.CopyBytesToGo(p, b.rest.Call("subarray", b.used))
	b.used += n
	return n, nil
}

func (b *fetched) Close() error {
	b.abort.Call("abort")
	return nil
}

// await waits for a promise. If done is closed, it aborts the request.
func await(done <-chan struct{}, abort, promise js.Value) (js.Value, error) {
	kept, broken := make(chan js.Value, 1), make(chan error, 1)
	keep := js.FuncOf(func(_ js.Value, args []js.Value) any {
		kept <- args[0]
		return nil
	})
	fail := js.FuncOf(func(_ js.Value, args []js.Value) any {
		broken <- fmt.Errorf("%w: %s", errNoAnswer, args[0].Get("message").String())
		return nil
	})
	defer keep.Release()
	defer fail.Release()
	promise.Call("then", keep, fail)
	for {
		select {
		case value := <-kept:
			return value, nil
		case err := <-broken:
			return js.Undefined(), err
		case <-done: // the promise fails now
			abort.Call("abort")
			done = nil
		}
	}
}
