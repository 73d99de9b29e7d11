package hubtest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Header is the header fields of an action, one value each.
type Header map[string]string

func (h Header) apply(to http.Header) {
	for k, v := range h {
		to.Set(k, v)
	}
}

// Status answers with a status, header fields and a body, without asking the
// server.
func Status(status int, header Header, body string) Action {
	return func(x *Exchange) {
		drain(x.Request)
		header.apply(x.Header())
		x.Header().Set("Content-Length", fmt.Sprint(len(body)))
		x.WriteHeader(status)
		_, _ = io.WriteString(x, body)
	}
}

// Error answers as the hub does for an error: X-Error-Code, X-Error-Message and
// a JSON body.
func Error(status int, code, message string) Action {
	return func(x *Exchange) {
		drain(x.Request)
		writeError(x, &apiError{status: status, code: code, message: message})
	}
}

// StorageError answers as the storage host does for an error, in XML.
func StorageError(status int, code, message string) Action {
	return func(x *Exchange) {
		drain(x.Request)
		storageError{status, code, message}.write(x)
	}
}

// After lets the server do its work, throws its answer away, and then acts:
// the client cannot tell whether the work was done.
func After(action Action) Action {
	return func(x *Exchange) {
		x.Next(newRecorder())
		action(x)
	}
}

// Reset cuts the connection before anything is answered.
func Reset() Action {
	return func(x *Exchange) { cut(x, true) }
}

// ResetUpload reads n bytes of the request body and cuts the connection.
func ResetUpload(n int64) Action {
	return func(x *Exchange) {
		_, _ = io.CopyN(io.Discard, x.Request.Body, n)
		cut(x, true)
	}
}

// cut takes the connection away, with a TCP reset or with a plain close.
func cut(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if t, ok := conn.(*net.TCPConn); ok && reset {
		_ = t.SetLinger(0)
	}
	_ = conn.Close()
}

// CutAfter sends the header and n bytes of the right answer, then resets the
// connection, or closes it in good order when reset is false.
func CutAfter(n int64, reset bool) Action {
	return func(x *Exchange) {
		x.Next(&limitWriter{ResponseWriter: x, left: n})
		_ = http.NewResponseController(x).Flush()
		cut(x, reset)
	}
}

// Truncate sends n bytes of the right answer without a Content-Length and ends
// the chunked body properly: the answer looks complete.
func Truncate(n int64) Action {
	return func(x *Exchange) {
		x.Request.Header.Del("Range")
		x.Next(&limitWriter{ResponseWriter: x, left: n, edit: func(int, http.Header) int {
			x.Header().Del("Content-Length")
			return http.StatusOK
		}})
		_ = http.NewResponseController(x).Flush()
	}
}

// Corrupt flips a bit of the n-th byte of the body (from 0) and leaves the
// length right.
func Corrupt(n int64) Action {
	return func(x *Exchange) { x.Next(&flipWriter{ResponseWriter: x, left: n}) }
}

// IgnoreRange answers 200 with the whole file whatever range was asked for.
func IgnoreRange() Action {
	return func(x *Exchange) {
		x.Request.Header.Del("Range")
		x.Next(x.ResponseWriter)
	}
}

// Shift asks the server for a range delta bytes later than the client did, and
// so answers with a Content-Range that was not asked for.
func Shift(delta int64) Action {
	return func(x *Exchange) {
		var from int64
		if _, err := fmt.Sscanf(x.Request.Header.Get("Range"), "bytes=%d-", &from); err == nil {
			x.Request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from+delta))
		}
		x.Next(x.ResponseWriter)
	}
}

// Gzip answers 200 with the whole file compressed, as a CDN that ignores
// Accept-Encoding: identity.
func Gzip() Action {
	return func(x *Exchange) {
		x.Request.Header.Del("Range")
		zip := gzip.NewWriter(x)
		x.Next(&encodeWriter{ResponseWriter: x, enc: zip})
		_ = zip.Close()
	}
}

// EditHeader lets the server answer and changes header and status on the way.
func EditHeader(edit func(status int, h http.Header) int) Action {
	return func(x *Exchange) { x.Next(&limitWriter{ResponseWriter: x, left: -1, edit: edit}) }
}

// SetHeader lets the server answer and overwrites header fields; an empty value
// removes the field.
func SetHeader(header Header) Action {
	return EditHeader(func(status int, h http.Header) int {
		for k, v := range header {
			if h.Del(k); v != "" {
				h.Set(k, v)
			}
		}
		return status
	})
}

// EditJSON lets the server answer and changes its JSON: v is what
// encoding/json makes of the body.
func EditJSON(edit func(v any) any) Action {
	return func(x *Exchange) {
		rec := newRecorder()
		x.Next(rec)
		for k, vs := range rec.header {
			x.Header()[k] = vs
		}
		body := rec.body.Bytes()
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) == nil && rec.status == http.StatusOK {
			body, _ = json.Marshal(edit(v))
		}
		x.Header().Set("Content-Length", fmt.Sprint(len(body)))
		x.WriteHeader(rec.status)
		_, _ = x.Write(body)
	}
}

// Slow sends the right answer one byte at a time, pause apart.
func Slow(pause time.Duration) Action {
	return func(x *Exchange) {
		x.Next(&slowWriter{ResponseWriter: x, done: x.Request.Context().Done(), pause: pause})
	}
}

// Stall sends n bytes of the right answer's body and then nothing more, until
// the client or the server closes; with n < 0 not even the header.
func Stall(n int64) Action {
	return func(x *Exchange) {
		if n >= 0 {
			x.Next(&limitWriter{ResponseWriter: x, left: n})
			_ = http.NewResponseController(x).Flush()
		} else {
			drain(x.Request) // Close is noticed only after the body
		}
		<-x.Request.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

// Redirect answers 302 to a URL made from the request.
func Redirect(to func(s *Server, r *http.Request) string) Action {
	return func(x *Exchange) {
		x.Header().Set("Location", to(x.Server, x.Request))
		x.WriteHeader(http.StatusFound)
	}
}

// Race lets another commit land on the branch just before the request is
// handled.
func Race(repo, branch string) Action {
	return func(x *Exchange) {
		x.Server.Push(repo, branch, map[string][]byte{"race.txt": []byte(x.Request.URL.Path)})
		x.Next(x.ResponseWriter)
	}
}
