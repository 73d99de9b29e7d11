package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// CompareOptions tell Compare how to name what it finds. The zero value works.
type CompareOptions struct {
	Unit    string   // for messages
	Names   []string // tensor names in encoding order; nil names them by number
	Workers int      // goroutines; 0 means one per processor
	// warnings of CheckUnread are errors: only the bytes of the official encoder pass
	Strict bool

	variant *variant // for tests; nil means the fastest
}

// Compare decodes the whole unit and compares it with src, its 2N bytes of little-endian BF16
// weights: all 16 bits of every weight, and the stored gaps and output positions (docs/format.md
// §7). src is read concurrently.
//
// It returns the first fault in the order of the weights, whatever the number of workers: a
// *[MismatchError] when a weight decodes to other bits, a *[StructureError] when a chunk
// contradicts itself although its weights agree. Other errors come from reading or from ctx. Memory
// is at most 1.3 MB per worker.
func (u *Unit) Compare(ctx context.Context, src io.ReaderAt, opt CompareOptions) error {
	v := cmp.Or(opt.variant, fastest())
	err := u.eachChunk(ctx, v, cut(0, u.nChunks), opt.Workers, src,
		func(c *codes, d *chunkData) bool { return v.same(c.exponents[:d.n], d.sm, d.bf16) })
	if err != nil || !opt.Strict {
		return opt.name(err, u.ends)
	}
	warnings, err := u.CheckUnread(ctx)
	if err == nil && len(warnings) > 0 {
		err = warnings[0]
	}
	return opt.wrap(err)
}

// name adds the unit's name to an error. A mismatch also gets the name of its tensor, and its
// element counts from there.
func (opt CompareOptions) name(err error, ends []int64) error {
	m, ok := errors.AsType[*MismatchError](err)
	if !ok {
		return opt.wrap(err)
	}
	i, _ := slices.BinarySearch(ends, m.Elem+1)
	m.Unit = opt.Unit
	m.Tensor = fmt.Sprintf("#%d", i)
	if i < len(opt.Names) {
		m.Tensor = opt.Names[i]
	}
	if i > 0 {
		m.Elem -= ends[i-1]
	}
	return m
}

// wrap puts the unit's name before an error.
func (opt CompareOptions) wrap(err error) error {
	if err == nil || opt.Unit == "" {
		return err
	}
	return fmt.Errorf("module %s: %w", opt.Unit, err)
}
