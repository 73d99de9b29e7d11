package pipeline

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/df11-convert/df11-convert/verify"
)

// nearArrays gives the arrays of a unit for two decoders, one after the other. Those of a remote model are brought into the
// work folder before, so that they are fetched once. release gives that room back; it may be called in any case.
func (v *verification) nearArrays(ctx context.Context, path string) (a verify.Arrays, release func() error, err error) {
	release = func() error { return nil }
	if a = v.DF11.arrays(path); v.GPU == nil || v.DF11.Commit == "" {
		return a, release, nil
	}
	if err := os.MkdirAll(v.WorkDir, 0o777); err != nil {
		return a, release, err
	}
	s, err := newFileSpool(v.WorkDir)
	if err != nil {
		return a, release, err
	}
	at := int64(0)
	for _, r := range []**io.SectionReader{&a.LUTs, &a.EncodedExponent, &a.SignMantissa, &a.OutputPositions, &a.Gaps, &a.SplitPositions} {
		n, err := io.Copy(io.NewOffsetWriter(s, at), contextReader{ctx, *r})
		if err == nil && n != (*r).Size() {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return a, s.Release, fmt.Errorf("fetch unit %s: %w", path, err)
		}
		*r = io.NewSectionReader(s, at, n)
		at += n
	}
	return a, s.Release, nil
}
