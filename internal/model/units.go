package model

import (
	"context"
	"io"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/verify"
)

// Coded reports whether a unit is stored as DF11.
func (d *DF11) Coded(unitPath string) bool {
	_, ok := d.tensors[unitPath+"."+encoder.NameEncodedExponent]
	return ok
}

// CheckForm checks that a unit has its six tensors, each with the type and shape that the official
// loader accepts (docs/format.md §8, §13). The same bytes in another shape load as another unit,
// and decoding doesn't show it.
func (d *DF11) CheckForm(unitPath string) error {
	c := checker{tensors: d.tensors}
	if c.checkArrays(unitPath); len(c.problems) == 0 {
		return nil
	}
	file := d.tensors[unitPath+"."+encoder.NameEncodedExponent].File
	return Invalidf(file, "%s", c.problems[0].Detail)
}

// OpenUnit checks everything that a unit's headers and arrays show, and opens the unit for decoding
// in order.
func (d *DF11) OpenUnit(u *spans.Unit) (*verify.Unit, error) {
	return d.openUnit(u.Path, d.arrays(u.Path, d.weights), u.Sizes())
}

// OpenAlone opens a unit without its original, to read a little here and there. It fetches only the
// ranges it reads.
func (d *DF11) OpenAlone(ctx context.Context, unitPath string) (*verify.Unit, error) {
	return d.openUnit(unitPath, d.SparseArrays(ctx, unitPath), nil)
}

func (d *DF11) openUnit(path string, a verify.Arrays, sizes []int64) (*verify.Unit, error) {
	if err := d.CheckForm(path); err != nil {
		return nil, err
	}
	return verify.Open(a, sizes)
}

// SparseArrays returns the six tensors of a unit, to read a little here and there. A missing tensor
// is an empty section, which verify.Open refuses.
func (d *DF11) SparseArrays(ctx context.Context, unitPath string) verify.Arrays {
	return d.arrays(unitPath, func(file string) io.ReaderAt { return d.sparse(ctx, file) })
}

func (d *DF11) arrays(unitPath string, open func(file string) io.ReaderAt) verify.Arrays {
	return verify.ArraysAt(func(name string) *io.SectionReader {
		t := d.tensors[unitPath+"."+name]
		return io.NewSectionReader(open(t.File), t.at, t.NBytes())
	})
}
