package fetch

import (
	"context"
	"io"
)

// ahead opens the file after the one that is being read. Its first bytes come while the last ones of
// the file before are read, so that the line never idles.
type ahead struct {
	ctx  context.Context //nolint:containedctx // of all files; a stream outlives the pass that opens it
	next *opening        // nil for none
}

// An opening is a stream on its way. No pass waits for it but the one that reads it.
type opening struct {
	file   *sourceFile
	cancel context.CancelCauseFunc
	done   chan struct{} // closed once r and err are set
	r      io.ReadCloser
	err    error
}

// openNext starts to open the next file once all of this one was asked for.
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
	streamCtx, cancel := context.WithCancelCause(f.ahead.ctx)
	o := &opening{file: f.files[next], cancel: cancel, done: make(chan struct{})}
	f.ahead.next = o
	go func() {
		defer close(o.done)
		o.r, o.err = f.Source.Stream(streamCtx, o.file.Index, 0, o.file.Size)
	}()
	return nil
}

// stream opens a stretch, or returns its stream if that is open. The stream ends with ctx.
func (f *Fetcher) stream(ctx context.Context, x stretch) (io.ReadCloser, error) {
	o := f.ahead.next
	if o == nil || o.file != x.file || x.from > 0 {
		return f.Source.Stream(ctx, x.file.Index, x.from, x.end)
	}
	f.ahead.next = nil
	context.AfterFunc(ctx, func() { o.cancel(context.Cause(ctx)) })
	<-o.done
	return o.r, o.err
}

// close ends the opening that nothing has read.
func (a *ahead) close() {
	if o := a.next; o != nil {
		a.next = nil
		o.cancel(nil)
		if <-o.done; o.err == nil {
			_ = o.r.Close()
		}
	}
}
