package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// misread checks an error by which values that a Hub sent rule out a conversion, because a bit may
// have changed on its way. It reads these values once more. If they're right now, it returns the
// path of the file that was read wrong. It returns "" if the error is right, or is none of this
// kind.
func (j *job) misread(ctx context.Context, err error) (file string, readErr error) {
	if j.Model.Local {
		return "", nil
	}
	if e, ok := errors.AsType[*spans.InexactError](err); ok {
		return j.isExact(ctx, e)
	}
	if e, ok := errors.AsType[*forward.AliasError](err); ok {
		return j.isEqual(ctx, e)
	}
	return "", nil
}

// isExact returns the file of an F32 tensor if BF16 can hold all its values.
func (j *job) isExact(ctx context.Context, e *spans.InexactError) (string, error) {
	for i, w := range j.Model.Listing.Weights {
		t, ok := w.Header.Lookup(e.Tensor)
		if !ok || w.Path != e.File {
			continue
		}
		start := w.Header.DataStart()
		r, err := j.Source.Stream(ctx, i, start+t.Begin, start+t.End)
		if err != nil {
			return "", err
		}
		defer r.Close()
		buf := streams.GetBlock()
		defer streams.PutBlock(buf)
		var narrow []byte
		for left := t.NBytes(); left > 0; {
			p := buf[:min(left, streams.BlockBytes)]
			if _, err := io.ReadFull(r, p); err != nil {
				return "", fmt.Errorf("read %s of %s again: %w", e.Tensor, e.File, err)
			}
			var inexact int64
			if narrow, inexact = spans.Narrow(narrow, p); inexact > 0 {
				return "", nil
			}
			left -= int64(len(p))
		}
		return e.File, nil
	}
	return "", nil
}

// isEqual returns the file of an alias if the first byte that differed doesn't differ anymore.
func (j *job) isEqual(ctx context.Context, e *forward.AliasError) (string, error) {
	for _, o := range j.outputs {
		i := slices.IndexFunc(o.Aliases, func(a spans.Alias) bool { return a.Name == e.Name })
		if i < 0 {
			continue
		}
		a := o.Aliases[i]
		var read [2][1]byte
		for k, t := range []spans.Tensor{a.Tensor, a.Of} {
			at := e.Byte
			if t.ExactF32 { // the upper half of each value
				at = e.Byte/2*4 + 2 + e.Byte%2
			}
			if err := j.Source.ReadRange(ctx, t.File, read[k][:], t.Offset+at); err != nil {
				return "", fmt.Errorf("read %s again: %w", t.Source, err)
			}
		}
		if read[0] == read[1] {
			return j.Model.Listing.Weights[a.File].Path, nil
		}
	}
	return "", nil
}
