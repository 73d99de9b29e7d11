package hubtest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"
)

// Header is the header fields of an action, one value each.
type Header map[string]string

// Status answers with a status, header fields and a body, without asking the server.
func Status(status int, header Header, body string) Action {
	return func(x *Exchange) {
		drain(x.Request)
		for k, v := range header {
			x.Header().Set(k, v)
		}
		x.Header().Set("Content-Length", fmt.Sprint(len(body)))
		x.WriteHeader(status)
		_, _ = io.WriteString(x, body)
	}
}

// Error answers as the hub does for an error: X-Error-Code, X-Error-Message and a JSON body.
func Error(status int, code, message string) Action {
	return func(x *Exchange) {
		drain(x.Request)
		(&apiError{status: status, code: code, message: message}).write(x)
	}
}

// StorageError answers as the storage host does for an error, in XML.
func StorageError(status int, code, message string) Action {
	return func(x *Exchange) {
		drain(x.Request)
		storageError{status, code, message}.write(x)
	}
}

// After lets the server do its work, throws its answer away, and then acts: the client cannot tell whether the work was
// done.
func After(action Action) Action {
	return func(x *Exchange) {
		x.Next(httptest.NewRecorder())
		action(x)
	}
}

// Reset cuts the connection before anything is answered.
func Reset() Action {
	return func(x *Exchange) { cut(x, true) }
}

// resetUpload reads n bytes of the request body and cuts the connection.
func resetUpload(n int64) Action {
	return func(x *Exchange) {
		_, _ = io.CopyN(io.Discard, x.Request.Body, n)
		cut(x, true)
	}
}

// cut takes the connection away, with a TCP reset or with a plain close.
func cut(x *Exchange, reset bool) {
	conn, _, err := http.NewResponseController(x).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if t, ok := conn.(*net.TCPConn); ok && reset {
		_ = t.SetLinger(0)
	}
	_ = conn.Close()
}

// first sends the header and n bytes of the right answer.
func (x *Exchange) first(n int64, edit headerEdit) {
	x.Next(&spoiled{ResponseWriter: x, edit: edit, body: &limitWriter{x, n}})
	_ = http.NewResponseController(x).Flush()
}

// cutAfter sends the header and n bytes of the right answer, then resets the connection, or closes it in good order when
// reset is false.
func cutAfter(n int64, reset bool) Action {
	return func(x *Exchange) {
		x.first(n, nil)
		cut(x, reset)
	}
}

// truncate sends n bytes of the right answer without a Content-Length and ends the chunked body properly: the answer looks
// complete.
func truncate(n int64) Action {
	return func(x *Exchange) {
		x.Request.Header.Del("Range")
		x.first(n, func(_ int, h http.Header) int {
			h.Del("Content-Length")
			return http.StatusOK
		})
	}
}

// stall sends n bytes of the right answer's body and then nothing more, until the client or the server closes; with n < 0
// not even the header.
func stall(n int64) Action {
	return func(x *Exchange) {
		if n >= 0 {
			x.first(n, nil)
		} else {
			drain(x.Request) // net/http notices that the client is gone only after the body
		}
		<-x.Request.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

// Slow sends the right answer one byte at a time, pause apart.
func Slow(pause time.Duration) Action {
	return func(x *Exchange) { x.Next(&spoiled{ResponseWriter: x, body: &slowWriter{x, pause}}) }
}

// corrupt flips a bit of the n-th byte of the body (from 0) and leaves the length right.
func corrupt(n int64) Action {
	return func(x *Exchange) { x.Next(&spoiled{ResponseWriter: x, body: &flipWriter{x, n}}) }
}

// compress answers 200 with the whole file compressed, as a CDN that ignores Accept-Encoding: identity.
func compress() Action {
	return func(x *Exchange) {
		x.Request.Header.Del("Range")
		zip := gzip.NewWriter(x)
		x.Next(&spoiled{ResponseWriter: x, body: zip, edit: func(status int, h http.Header) int {
			h.Del("Content-Length")
			h.Set("Content-Encoding", "gzip")
			return status
		}})
		_ = zip.Close()
	}
}

// ignoreRange answers 200 with the whole file whatever range was asked for.
func ignoreRange() Action {
	return func(x *Exchange) {
		x.Request.Header.Del("Range")
		x.Next(x.ResponseWriter)
	}
}

// shift asks the server for a range delta bytes later than the client did, and so answers with a Content-Range that was not
// asked for.
func shift(delta int64) Action {
	return func(x *Exchange) {
		var from int64
		if _, err := fmt.Sscanf(x.Request.Header.Get("Range"), "bytes=%d-", &from); err == nil {
			x.Request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from+delta))
		}
		x.Next(x.ResponseWriter)
	}
}

// setHeader lets the server answer and overwrites header fields; an empty value removes the field.
func setHeader(header Header) Action {
	return func(x *Exchange) {
		x.Next(&spoiled{ResponseWriter: x, body: x, edit: func(status int, h http.Header) int {
			for k, v := range header {
				if h.Del(k); v != "" {
					h.Set(k, v)
				}
			}
			return status
		}})
	}
}

// EditJSON lets the server answer and changes its JSON; v is the decoded body.
func EditJSON(edit func(v any) any) Action {
	return func(x *Exchange) {
		rec := httptest.NewRecorder()
		x.Next(rec)
		for k, vs := range rec.Header() {
			x.Header()[k] = vs
		}
		body := rec.Body.Bytes()
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) == nil && rec.Code == http.StatusOK {
			body, _ = json.Marshal(edit(v))
		}
		x.Header().Set("Content-Length", fmt.Sprint(len(body)))
		x.WriteHeader(rec.Code)
		_, _ = x.Write(body)
	}
}

// redirectTo answers 302 to the path of the request at another address.
func redirectTo(origin func(s *Server) string) Action {
	return func(x *Exchange) {
		x.Header().Set("Location", origin(x.Server)+x.Request.URL.EscapedPath())
		x.WriteHeader(http.StatusFound)
	}
}

var errCut = errors.New("cut by a fault")

// headerEdit changes the header of an answer and returns its new status.
type headerEdit func(status int, h http.Header) int

// spoiled passes an answer on, the header through edit and the body through a writer of its own.
type spoiled struct {
	http.ResponseWriter
	edit  headerEdit // or nil
	body  io.Writer
	wrote bool
}

func (w *spoiled) WriteHeader(status int) {
	if w.wrote {
		return
	}
	w.wrote = true
	if w.edit != nil {
		status = w.edit(status, w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *spoiled) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// limitWriter passes the first bytes and fails after them.
type limitWriter struct {
	w    io.Writer
	left int64
}

func (w *limitWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if err == nil && n < len(p) {
		err = errCut
	}
	return n, err
}

// flipWriter changes one byte.
type flipWriter struct {
	w    io.Writer
	left int64 // bytes before the one to change; negative afterwards
}

func (w *flipWriter) Write(p []byte) (int, error) {
	if w.left >= 0 && w.left < int64(len(p)) {
		p = bytes.Clone(p)
		p[w.left] ^= 0x10
	}
	n, err := w.w.Write(p)
	w.left -= int64(n)
	return n, err
}

// slowWriter sends single bytes.
type slowWriter struct {
	x     *Exchange
	pause time.Duration
}

func (w *slowWriter) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := w.x.Write(p[i : i+1]); err != nil {
			return i, err
		}
		if err := http.NewResponseController(w.x).Flush(); err != nil {
			return i, err
		}
		if !sleep(w.x.Request.Context().Done(), w.pause) {
			return i + 1, errCut
		}
	}
	return len(p), nil
}
