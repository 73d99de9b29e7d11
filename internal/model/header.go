package model

import (
	"bytes"
	"context"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// headersAtOnce is how many headers are read at a time.
const headersAtOnce = 8

// firstHeaderRead is the size of the first read of a header; most headers fit.
const firstHeaderRead = smallestPiece

// HeaderRead is how many bytes of a weight file were read for its header.
func HeaderRead(w plan.WeightFile) int64 {
	return min(w.Size, max(firstHeaderRead, w.Header.DataStart()))
}

// headerError names the file whose header is wrong or could not be read.
type headerError struct {
	file string
	err  error
}

func (e *headerError) Error() string { return "header of " + e.file + ": " + e.err.Error() }

func (e *headerError) Unwrap() error { return e.err }

// headers reads the headers of weight files, several at a time. If several are wrong, the headerError is about the first of
// them.
func (f *files) headers(ctx context.Context, weights []hub.FileRef) ([]plan.WeightFile, error) {
	out, errs := make([]plan.WeightFile, len(weights)), make([]error, len(weights))
	g, stop := errgroup.WithContext(ctx)
	g.SetLimit(headersAtOnce)
	for i, ref := range weights {
		if stop.Err() != nil {
			break
		}
		g.Go(func() error {
			h, err := f.header(ctx, ref)
			if err != nil {
				errs[i] = &headerError{ref.Path, err}
			}
			out[i] = plan.WeightFile{File: planFile(ref), Header: h}
			return errs[i]
		})
	}
	if g.Wait() == nil && ctx.Err() == nil {
		return out, nil
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return nil, context.Cause(ctx)
}

// header reads one header, that of a remote file once more if it is wrong: no hash covers a range, so the bytes may have been
// spoiled on their way or in the shared cache.
func (f *files) header(ctx context.Context, ref hub.FileRef) (*safetensors.Header, error) {
	h, err := readHeader(f.readers[ref.Path], ref.Size)
	if err == nil || f.client == nil || ctx.Err() != nil {
		return h, err
	}
	f.Recheck(ctx, ref.Path)
	if f.pieces != nil {
		f.pieces.forget(ref.Path)
	}
	return readHeader(f.readers[ref.Path], ref.Size)
}

// lfsPointer begins the small text that Git keeps in place of a large file.
const lfsPointer = "version https://git-lfs.github.com/spec/"

func readHeader(r io.ReaderAt, size int64) (*safetensors.Header, error) {
	raw := make([]byte, min(size, firstHeaderRead))
	if err := streams.ReadFull(r, raw, 0); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(raw, []byte(lfsPointer)) {
		return nil, &plan.RefusedError{
			Reason: plan.ReasonNoWeights, Detail: "the file is a Git LFS pointer, which stands for weights that were not fetched",
			Hint: "fetch the weights with: git lfs pull",
		}
	}
	n, err := safetensors.HeaderSize(raw, size)
	if err != nil {
		return nil, err
	}
	const start = 8 // the length is before the header
	header := make([]byte, n)
	if begun := copy(header, raw[start:]); begun < len(header) {
		err = streams.ReadFull(r, header[begun:], int64(len(raw)))
	}
	if err != nil {
		return nil, err
	}
	return safetensors.ParseHeader(header, size)
}
