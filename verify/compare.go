package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// CompareOptions configure Compare. The zero value works.
type CompareOptions struct {
	Unit    string   // the unit's name in errors
	Names   []string // tensor names in encoding order; nil: numbers
	Workers int      // goroutines, at least one
	// a warning of CheckUnread is an error, so only the official encoder's bytes pass
	Strict bool
}

// errNotOpen says that Open hasn't returned a unit.
var errNotOpen = errors.New("the unit isn't open")

// Compare decodes the whole unit and compares it with src, its 2N bytes of little-endian BF16
// weights. It compares all 16 bits of every weight, and the stored gaps and output positions
// (docs/format.md §7). It reads src concurrently.
//
// It returns the first error in the order of the chunks, no matter how many workers there are: a
// *[StructureError] if a chunk contradicts itself, or else a *[MismatchError] if a weight decodes to
// other bits. Other errors come from reading or from ctx. Each worker needs at most 1.3 MB of memory.
func (u *Unit) Compare(ctx context.Context, src io.ReaderAt, opt CompareOptions) error {
	switch {
	case u == nil || u.nChunks == 0:
		return errNotOpen
	case src == nil:
		return errors.New("compare: there is no source")
	}
	v := fastest()
	err := u.eachChunk(ctx, v, cut(0, u.nChunks), opt.Workers, src,
		func(c *codes, d *chunkData) error {
			if v.same(c.exponents[:d.n], d.sm, d.bf16) {
				return nil
			}
			got := make([]byte, len(d.bf16))
			v.join(got, c.exponents[:d.n], d.sm)
			return firstMismatch(got, d.bf16, int64(u.positions[d.index]))
		})
	if err == nil && opt.Strict {
		warning, failed := u.CheckUnread()
		if err = failed; warning != nil {
			err = warning
		}
	}
	return opt.name(err, u.ends)
}

// firstMismatch returns the first difference between weights, which differ. elem is their first
// element.
func firstMismatch(got, want []byte, elem int64) error {
	for i := 0; i < len(got); i += 2 {
		g, w := binary.LittleEndian.Uint16(got[i:]), binary.LittleEndian.Uint16(want[i:])
		if g != w {
			return &MismatchError{Elem: elem + int64(i/2), Got: g, Want: w}
		}
	}
	return errors.New("a buffer changed while it was compared")
}

// name adds the unit's name to an error. For a mismatch it also names the tensor, and counts Elem
// from the tensor's start.
func (opt CompareOptions) name(err error, ends []int64) error {
	if err == nil {
		return nil
	}
	m, ok := errors.AsType[*MismatchError](err)
	if !ok {
		if opt.Unit == "" {
			return err
		}
		return fmt.Errorf("module %s: %w", opt.Unit, err)
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
