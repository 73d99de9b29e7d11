package model

import (
	"cmp"
	"context"
	"errors"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// A headerError names the file whose header is wrong or couldn't be read.
type headerError struct {
	file string
	err  error
}

func (e *headerError) Error() string {
	if ofHub(e.err) {
		return e.err.Error() // it names the file
	}
	return "header of " + e.file + ": " + e.err.Error()
}

func (e *headerError) Unwrap() error { return e.err }

// headers reads the headers of weight files, several at a time. If several are wrong, the
// headerError names the first.
func (f *files) headers(ctx context.Context, weights []plan.File) ([]plan.WeightFile, error) {
	out, errs := make([]plan.WeightFile, len(weights)), make([]error, len(weights))
	var all safetensors.Headers
	g, stop := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, file := range weights {
		if stop.Err() != nil {
			break
		}
		g.Go(func() error {
			h, err := f.header(ctx, &all, file)
			if err != nil {
				errs[i] = &headerError{file.Path, err}
			}
			out[i] = plan.WeightFile{File: file, Header: h}
			return errs[i]
		})
	}
	_ = g.Wait() // errs has all errors
	return out, cmp.Or(append(errs, context.Cause(ctx))...)
}

// header reads one header. It reads a wrong header of a remote file twice: no hash covers a range,
// so the bytes may be damaged, on the way or in the shared cache.
func (f *files) header(ctx context.Context, all *safetensors.Headers,
	file plan.File) (*safetensors.Header, error) {
	r := f.sparse(ctx, file.Path)
	h, err := readHeader(all, r, file.Size)
	if err == nil || !f.Recheck(ctx, file.Path) {
		return h, err
	}
	return readHeader(all, r, file.Size)
}

func readHeader(all *safetensors.Headers, r io.ReaderAt, size int64) (*safetensors.Header, error) {
	h, err := all.Read(r, size)
	if !errors.Is(err, safetensors.ErrHeaderLength) {
		return h, err
	}
	begin := make([]byte, min(size, int64(len(lfsPointer))))
	if streams.ReadFull(r, begin, 0) == nil && string(begin) == lfsPointer {
		return nil, refusePointer("the file", "weights that were")
	}
	return nil, err
}
