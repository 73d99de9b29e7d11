package hubtest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

var errCut = errors.New("cut by a fault")

// headerEdit changes the header of an answer, and returns the status that takes the place of the right one.
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
