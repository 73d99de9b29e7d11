package fetch

import (
	"context"
	"io"
)

// ahead is the stream of the file after the one that is being read, if it's open already. Its first
// bytes come while the last ones of the file before are read, so that the line never idles.
type ahead struct {
	ctx    context.Context //nolint:containedctx // of all files; a stream outlives the pass that opens it
	file   *sourceFile     // nil for none
	r      io.ReadCloser
	cancel context.CancelCauseFunc
}

// openNext opens the next file once all of this one was asked for. A failure is left to the pass
// that reads the file.
func (f *Fetcher) openNext(ctx context.Context, x stretch, r io.Reader) error {
	s, ok := r.(interface{ Requested() <-chan struct{} })
	next := x.file.Index + 1
	if !ok || x.end < x.file.Size || f.inPlace() || next == len(f.files) || f.files[next].byRange {
		return nil
	}
	select {
	case <-s.Requested():
	case <-ctx.Done():
		return nil
	}
	a := &f.ahead
	streamCtx, cancel := context.WithCancelCause(a.ctx)
	file := f.files[next]
	ahead, err := f.Source.Stream(streamCtx, file.Index, 0, file.Size)
	if err != nil {
		cancel(nil)
		return nil //nolint:nilerr // the stretch opens it again, and returns its error
	}
	a.file, a.r, a.cancel = file, ahead, cancel
	return nil
}

// stream opens a stretch, or returns its stream if that is open. The stream ends with ctx.
func (f *Fetcher) stream(ctx context.Context, x stretch) (io.ReadCloser, error) {
	a := &f.ahead
	if a.file != x.file || x.from > 0 {
		return f.Source.Stream(ctx, x.file.Index, x.from, x.end)
	}
	r, cancel := a.r, a.cancel
	a.file, a.r = nil, nil
	context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return r, nil
}

// close closes the stream that nothing has read.
func (a *ahead) close() {
	if a.r != nil {
		a.cancel(nil)
		_ = a.r.Close()
		a.file, a.r = nil, nil
	}
}
