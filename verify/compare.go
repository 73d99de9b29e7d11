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
	Workers int      // goroutines; 0: one per processor
	// warnings of CheckUnread are errors, so only the official encoder's bytes pass
	Strict bool
}

// Compare decodes the whole unit and compares it with src, its 2N bytes of little-endian BF16
// weights. It compares all 16 bits of every weight, and the stored gaps and output positions
// (docs/format.md §7). It reads src concurrently.
//
// It returns the first error in the order of the chunks, no matter how many workers there are: a
// *[StructureError] if a chunk contradicts itself, or else a *[MismatchError] if a weight decodes to
// other bits. Other errors come from reading or from ctx. Each worker needs at most 1.3 MB of memory.
func (u *Unit) Compare(ctx context.Context, src io.ReaderAt, opt CompareOptions) error {
	v := fastest()
	err := u.eachChunk(ctx, v, cut(0, u.nChunks), opt.Workers, src,
		func(c *codes, d *chunkData) error {
			if v.same(c.exponents[:d.n], d.sm, d.bf16) {
				return nil
			}
			return u.firstMismatch(c, d)
		})
	if err != nil || !opt.Strict {
		return opt.name(err, u.ends)
	}
	warnings, err := u.CheckUnread(ctx)
	if err == nil && len(warnings) > 0 {
		err = warnings[0]
	}
	return opt.wrap(err)
}

// firstMismatch returns the first weight of a decoded chunk that differs from the source.
func (l *layout) firstMismatch(c *codes, d *chunkData) error {
	for i := range d.n {
		got, want := weight(c.exponents[i], d.sm[i]), binary.LittleEndian.Uint16(d.bf16[2*i:])
		if got != want {
			return &MismatchError{Elem: int64(l.positions[d.index]) + int64(i), Got: got, Want: want}
		}
	}
	panic("verify: internal error: the ways to compare disagree")
}

// name adds the unit's name to an error. For a mismatch it also names the tensor, and counts Elem
// from the tensor's start.
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

// wrap puts the unit's name in front of an error.
func (opt CompareOptions) wrap(err error) error {
	if err == nil || opt.Unit == "" {
		return err
	}
	return fmt.Errorf("module %s: %w", opt.Unit, err)
}
