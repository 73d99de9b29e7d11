package hubtest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

var errCut = errors.New("cut by a fault")

// limitWriter passes the first bytes of a body and fails after them; a negative
// limit passes all. It can change status and header.
type limitWriter struct {
	http.ResponseWriter
	left  int64
	edit  func(status int, h http.Header) int
	wrote bool
}

func (w *limitWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *limitWriter) WriteHeader(status int) {
	if w.wrote {
		return
	}
	w.wrote = true
	if w.edit != nil {
		status = w.edit(status, w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *limitWriter) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if w.left < 0 {
		return w.ResponseWriter.Write(p)
	}
	n := min(int64(len(p)), w.left)
	m, err := w.ResponseWriter.Write(p[:n])
	w.left -= int64(m)
	if err == nil && m < len(p) {
		err = errCut
	}
	return m, err
}

// flipWriter changes one byte.
type flipWriter struct {
	http.ResponseWriter
	left int64 // bytes before the one to change; negative afterwards
}

func (w *flipWriter) Write(p []byte) (int, error) {
	if w.left < 0 || w.left >= int64(len(p)) {
		n, err := w.ResponseWriter.Write(p)
		w.left -= int64(n)
		if w.left < 0 {
			w.left = -1
		}
		return n, err
	}
	q := append([]byte(nil), p...)
	q[w.left] ^= 0x10
	w.left = -1
	return w.ResponseWriter.Write(q)
}

// encodeWriter sends a body through an encoder.
type encodeWriter struct {
	http.ResponseWriter
	enc   io.Writer
	wrote bool
}

func (w *encodeWriter) WriteHeader(status int) {
	if w.wrote {
		return
	}
	w.wrote = true
	w.Header().Del("Content-Length")
	w.Header().Set("Content-Encoding", "gzip")
	w.ResponseWriter.WriteHeader(status)
}

func (w *encodeWriter) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return w.enc.Write(p)
}

// slowWriter sends single bytes.
type slowWriter struct {
	http.ResponseWriter
	done  <-chan struct{}
	pause time.Duration
}

func (w *slowWriter) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := w.ResponseWriter.Write(p[i : i+1]); err != nil {
			return i, err
		}
		if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
			return i, err
		}
		if !sleep(w.done, w.pause) {
			return i + 1, errCut
		}
	}
	return len(p), nil
}

// recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}
