package hubtest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"time"
)

// A Header has the header fields of an action, one value each.
type Header map[string]string

// Status answers with a status, header fields, and a body, without asking the server.
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
	return refuse(failCode(status, code, "%s", message))
}

// StorageError answers as the storage host does for an error, in XML.
func StorageError(status int, code, message string) Action {
	return refuse(failStorage(status, code, message))
}

func refuse(why *refusal) Action {
	return func(x *Exchange) { why.answer(x, x.Request) }
}

// After lets the server do its work, drops its answer, and then acts. The client can't know whether
// the work was done.
func After(action Action) Action {
	return func(x *Exchange) {
		x.Next(httptest.NewRecorder())
		action(x)
	}
}

// Reset cuts the connection before any answer.
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

// cut ends the connection, with a TCP reset or a plain close.
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

// whole is an answer of the server before it's sent.
type whole struct {
	status int
	header http.Header
	body   []byte
}

// right returns the server's answer to the request. Without ranges it's the whole file.
func (x *Exchange) right(ranges bool) *whole {
	if !ranges {
		x.Request.Header.Del("Range")
	}
	rec := httptest.NewRecorder()
	x.Next(rec)
	return &whole{rec.Code, rec.Header(), rec.Body.Bytes()}
}

// send sends an answer, or its header and the first n bytes.
func (x *Exchange) send(a *whole, n int) {
	maps.Copy(x.Header(), a.header)
	x.WriteHeader(a.status)
	_, _ = x.Write(a.body[:min(n, len(a.body))])
	_ = http.NewResponseController(x).Flush()
}

// change sends the right answer after a change.
func change(edit func(a *whole)) Action {
	return func(x *Exchange) {
		a := x.right(true)
		edit(a)
		x.send(a, len(a.body))
	}
}

// cutAfter sends the header and n bytes of the right answer. Then it resets the connection, or
// closes it properly if reset is false.
func cutAfter(n int, reset bool) Action {
	return func(x *Exchange) {
		x.send(x.right(true), n)
		cut(x, reset)
	}
}

// truncate sends n bytes of the file without a Content-Length and ends the chunked body properly,
// so the answer looks complete.
func truncate(n int) Action {
	return func(x *Exchange) {
		a := x.right(false)
		a.header.Del("Content-Length")
		x.send(a, n)
	}
}

// stall sends n bytes of the right answer's body and then nothing, until the client or the server
// closes. With n < 0 it doesn't even send the header.
func stall(n int) Action {
	return func(x *Exchange) {
		if n >= 0 {
			x.send(x.right(true), n)
		} else {
			drain(x.Request) // net/http notices a lost client only after the body
		}
		<-x.Request.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

// slow sends the right answer one byte at a time, with a wait before each.
func slow(pause time.Duration) Action {
	return func(x *Exchange) {
		a := x.right(true)
		x.send(a, 0)
		for i := range a.body {
			_, err := x.Write(a.body[i : i+1])
			if err = errors.Join(err, http.NewResponseController(x).Flush()); err != nil ||
				!sleep(x.Request.Context().Done(), pause) {
				return
			}
		}
	}
}

// corrupt flips a bit of the body's n-th byte (from 0) and keeps the length.
func corrupt(n int) Action {
	return change(func(a *whole) {
		if n < len(a.body) {
			a.body[n] ^= 0x10
		}
	})
}

// compress answers 200 with the whole file compressed, like a CDN that ignores Accept-Encoding:
// identity.
func compress(x *Exchange) {
	a := x.right(false)
	var small bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&small, gzip.BestSpeed)
	_, _ = zip.Write(a.body)
	_ = zip.Close()
	a.header.Del("Content-Length")
	a.header.Set("Content-Encoding", "gzip")
	a.body = small.Bytes()
	x.send(a, len(a.body))
}

// ignoreRange answers 200 with the whole file for any range.
func ignoreRange(x *Exchange) {
	a := x.right(false)
	x.send(a, len(a.body))
}

// shift asks the server for a range delta bytes later than the client did, so the Content-Range is
// wrong.
func shift(delta int64) Action {
	return func(x *Exchange) {
		var from int64
		if _, err := fmt.Sscanf(x.Request.Header.Get("Range"), "bytes=%d-", &from); err == nil {
			x.Request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from+delta))
		}
		x.Next(x.ResponseWriter)
	}
}

// setHeader lets the server answer and overwrites header fields. An empty value removes the field.
func setHeader(header Header) Action {
	return change(func(a *whole) {
		for k, v := range header {
			if a.header.Del(k); v != "" {
				a.header.Set(k, v)
			}
		}
	})
}

// replace lets the server answer, and replaces what a pattern matches in the body.
func replace(pattern, instead string) Action {
	re := regexp.MustCompile(pattern)
	return change(func(a *whole) {
		if a.status == http.StatusOK {
			a.body = re.ReplaceAll(a.body, []byte(instead))
			a.header.Set("Content-Length", fmt.Sprint(len(a.body)))
		}
	})
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
