package pipeline

import (
	"io"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/verify"
)

// sixTensors are the last names of a unit's stored tensors (docs/format.md §8).
var sixTensors = []string{"luts", "encoded_exponent", "sign_mantissa", "output_positions", "gaps", "split_positions"}

// coded says whether a unit is stored as DF11, not as its weights unchanged.
func (d *DF11) coded(path string) bool {
	_, ok := d.tensors[path+".encoded_exponent"]
	return ok
}

// checkForm checks that a unit has its six tensors, each with the type and shape by which the official loader takes them
// (docs/format.md §8, §13). Their bytes alone do not show these: the same bytes in another shape load as another unit.
func (d *DF11) checkForm(path string) error {
	for _, name := range sixTensors {
		t, ok := d.tensors[path+"."+name]
		if !ok {
			return wrongf("", "tensor %s.%s is missing", path, name)
		}
		if want, ok := plan.StoredForm(name, t.Tensor); !ok {
			return wrongf(t.file, "tensor %s is %s %v, the format wants %s", t.Name, t.DType, t.Shape, want)
		}
	}
	return nil
}

// openUnit opens a unit of the model after all that its headers and arrays show was found right.
func (d *DF11) openUnit(u *taskUnit) (*verify.Unit, error) {
	if err := d.checkForm(u.Path); err != nil {
		return nil, err
	}
	return verify.Open(d.arrays(u.Path), u.nElems(), u.sizes)
}

// arrays points at the six tensors of a unit in the model; a missing one is an empty section, which verify.Open refuses.
func (d *DF11) arrays(path string) verify.Arrays {
	at := func(name string) *io.SectionReader {
		if s, ok := d.section(path + "." + name); ok {
			return s
		}
		return io.NewSectionReader(eofReader{}, 0, 0)
	}
	return verify.Arrays{
		LUTs: at("luts"), EncodedExponent: at("encoded_exponent"), SignMantissa: at("sign_mantissa"),
		OutputPositions: at("output_positions"), Gaps: at("gaps"), SplitPositions: at("split_positions"),
	}
}

// eofReader has no bytes.
type eofReader struct{}

func (eofReader) Read([]byte) (int, error)          { return 0, io.EOF }
func (eofReader) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
