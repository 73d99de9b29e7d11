package model

import (
	"context"
	"io"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/verify"
)

// Coded reports whether a unit is stored as DF11, not as its weights unchanged.
func (d *DF11) Coded(unitPath string) bool {
	_, ok := d.tensors[unitPath+"."+encoder.NameEncodedExponent]
	return ok
}

// CheckForm checks that a unit has its six tensors, each with the type and shape by which the
// official loader takes it (docs/format.md §8, §13). The same bytes in another shape load as
// another unit, and decoding does not show it.
func (d *DF11) CheckForm(unitPath string) error {
	for _, name := range encoder.ArrayNames() {
		t, ok := d.tensors[unitPath+"."+name]
		if !ok {
			return Invalidf("", "tensor %s.%s is missing", unitPath, name)
		}
		if err := encoder.CheckArray(name, string(t.DType), t.Shape); err != nil {
			return Invalidf(t.File, "tensor %s is %v", t.Name, err)
		}
	}
	return nil
}

// OpenUnit checks everything that the headers and the arrays of a unit show, and opens it to be
// decoded in order.
func (d *DF11) OpenUnit(u *spans.Unit) (*verify.Unit, error) {
	return d.openUnit(u, d.arrays(u.Path, d.weights))
}

// OpenSparse is OpenUnit for reading a little here and there: of a remote file exactly the ranges
// that are read are fetched.
func (d *DF11) OpenSparse(ctx context.Context, u *spans.Unit) (*verify.Unit, error) {
	return d.openUnit(u, d.SparseArrays(ctx, u.Path))
}

func (d *DF11) openUnit(u *spans.Unit, a verify.Arrays) (*verify.Unit, error) {
	if err := d.CheckForm(u.Path); err != nil {
		return nil, err
	}
	return verify.Open(a, u.Sizes())
}

// SparseArrays points at the six tensors of a unit, for reading a little here and there. A missing
// tensor is an empty section, which verify.Open refuses.
func (d *DF11) SparseArrays(ctx context.Context, unitPath string) verify.Arrays {
	return d.arrays(unitPath, func(file string) io.ReaderAt { return d.sparse(ctx, file) })
}

func (d *DF11) arrays(unitPath string, open func(file string) io.ReaderAt) verify.Arrays {
	return verify.ArraysAt(func(name string) *io.SectionReader {
		t := d.tensors[unitPath+"."+name]
		return io.NewSectionReader(open(t.File), t.at, t.NBytes())
	})
}
