package hubtest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	return refuse(&apiError{status: status, code: code, message: message})
}

// StorageError answers as the storage host does for an error, in XML.
func StorageError(status int, code, message string) Action {
	return refuse(storageError{status, code, message})
}

func refuse(r refusal) Action {
	return func(x *Exchange) { answerRefusal(x, x.Request, r) }
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
func (x *Exchange) first(n int, edit headerEdit) {
	x.Next(&spoiled{ResponseWriter: x, edit: edit, body: writerFunc(func(p []byte) (int, error) {
		sent, err := x.Write(p[:min(len(p), n)])
		if n -= sent; err == nil && sent < len(p) {
			err = errCut
		}
		return sent, err
	})})
	_ = http.NewResponseController(x).Flush()
}

// cutAfter sends the header and n bytes of the right answer, then resets the connection, or closes it in good order when
// reset is false.
func cutAfter(n int, reset bool) Action {
	return func(x *Exchange) {
		x.first(n, nil)
		cut(x, reset)
	}
}

// truncate sends n bytes of the right answer without a Content-Length and ends the chunked body properly: the answer looks
// complete.
func truncate(n int) Action {
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
func stall(n int) Action {
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
	return func(x *Exchange) {
		x.Next(&spoiled{ResponseWriter: x, body: writerFunc(func(p []byte) (int, error) {
			for i := range p {
				_, err := x.Write(p[i : i+1])
				if err == nil {
					err = http.NewResponseController(x).Flush()
				}
				if err == nil && !sleep(x.Request.Context().Done(), pause) {
					err = errCut
				}
				if err != nil {
					return i, err
				}
			}
			return len(p), nil
		})})
	}
}

// corrupt flips a bit of the n-th byte of the body (from 0) and leaves the length right.
func corrupt(n int) Action {
	return func(x *Exchange) {
		left := n // bytes before the one to change
		x.Next(&spoiled{ResponseWriter: x, body: writerFunc(func(p []byte) (int, error) {
			if left >= 0 && left < len(p) {
				p = bytes.Clone(p)
				p[left] ^= 0x10
			}
			left -= len(p)
			return x.Write(p)
		})})
	}
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
		maps.Copy(x.Header(), rec.Header())
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

// redirectHome answers 308 to the same path and query on the public hub.
func redirectHome(x *Exchange) {
	drain(x.Request)
	x.Header().Set("Location", "https://huggingface.co"+x.Request.URL.RequestURI())
	x.WriteHeader(http.StatusPermanentRedirect)
}

// noRoute answers as a hub that does not have the route: with a page for people.
func noRoute(x *Exchange) {
	Status(http.StatusNotFound, Header{"Content-Type": "text/html"}, "<html><body>Not Found</body></html>")(x)
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

// writerFunc is a writer of a single function.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
