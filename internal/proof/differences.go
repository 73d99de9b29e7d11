package proof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

// maxListed bounds how many differences are listed; all are counted.
const maxListed = 100

// What a Difference is about.
const (
	KindModule    = "module"    // a unit
	KindTensor    = "tensor"    // a tensor that is stored unchanged
	KindFile      = "file"      // a file that is not as the manifest says
	KindRebuilt   = "rebuilt"   // a file of the original that can't be rebuilt
	KindStructure = "structure" // something else that headers and config show
)

// Differences is what is wrong with a model. Without Options.All the check ends with the first difference.
type Differences struct {
	All       bool         `json:"all"` // everything that the level looks at was looked at
	Modules   int          `json:"modules"`
	OfModules int          `json:"of_modules"` // that the model has
	Weights   int64        `json:"weights"`    // that differ in these modules, as far as they were compared
	Compared  int64        `json:"weights_compared"`
	Tensors   int          `json:"tensors"`
	Values    int64        `json:"values"` // that differ in these tensors
	Files     int          `json:"files"`
	Rebuilt   int          `json:"rebuilt"`
	Structure int          `json:"structure"`
	List      []Difference `json:"list"` // the first ones
}

// Count is how many differences there are, listed or not.
func (d *Differences) Count() int { return d.Modules + d.Tensors + d.Files + d.Rebuilt + d.Structure }

// MostDiffer reports whether so many weights differ that the original is not that of the model. Of two unrelated models, about
// 999 of 1000 weights differ.
func (d *Differences) MostDiffer() bool { return 10*d.Weights > 9*d.Compared }

// Difference is one thing that is wrong. Weights are 0 where none was compared.
type Difference struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Fault     string `json:"fault"` // what was found first
	Differing int64  `json:"differing_weights"`
	Weights   int64  `json:"weights"`
	// Tensor and Element are the place of the first weight that differs, Got and Want its bits.
	Tensor  string `json:"tensor,omitempty"`
	Element *int64 `json:"element,omitempty"`
	Got     string `json:"got,omitempty"`
	Want    string `json:"want,omitempty"`
}

// findings are the differences so far.
type findings struct {
	Differences
	noted   map[string]bool // names; each counts once
	first   error           // about weights if there are such, since it says most
	weights bool            // first is about weights
}

func (f *findings) clone() findings {
	c := *f
	c.noted = maps.Clone(f.noted)
	return c
}

// isFault reports whether an error says that the model is wrong, not that it could not be looked at.
func isFault(err error) bool {
	mismatch, structure, invalid := (*verify.MismatchError)(nil), (*verify.StructureError)(nil), (*model.InvalidError)(nil)
	return errors.As(err, &mismatch) || errors.As(err, &structure) || errors.As(err, &invalid)
}

// note keeps a difference that err tells of. It gives err, with which the check ends, or nil if it is to go on.
func (f *findings) note(d Difference, err error) error {
	if m, ok := errors.AsType[*verify.MismatchError](err); ok {
		d.Tensor, d.Element, d.Got, d.Want = m.Tensor, &m.Elem, fmt.Sprintf("%#04x", m.Got), fmt.Sprintf("%#04x", m.Want)
	}
	if weights := d.Kind == KindModule || d.Kind == KindTensor; f.first == nil || weights && !f.weights {
		f.first, f.weights = err, weights
	}
	if d.Fault = err.Error(); d.Name == "" || !f.noted[d.Name] {
		f.noted[d.Name] = true
		f.count(d)
	}
	if f.All {
		return nil
	}
	return err
}

func (f *findings) count(d Difference) {
	switch d.Kind {
	case KindModule:
		f.Modules++
		f.Weights += d.Differing
		f.Compared += d.Weights
	case KindTensor:
		f.Tensors++
		f.Values += d.Differing
	case KindFile:
		f.Files++
	case KindRebuilt:
		f.Rebuilt++
	default:
		f.Structure++
	}
	if len(f.List) < maxListed {
		f.List = append(f.List, d)
	}
}

// fault notes an error that says that something is wrong, and passes any other on.
func (f *findings) fault(kind, name string, err error) error {
	if err == nil || !isFault(err) {
		return err
	}
	return f.note(Difference{Kind: kind, Name: name}, err)
}

// unitFault is fault for a unit in which err was found first. It counts the weights that differ, as far as they can be compared.
func (f *findings) unitFault(err error, path string, count func() (differing, of int64, err error)) error {
	if err == nil || !isFault(err) {
		return err
	}
	d := Difference{Kind: KindModule, Name: path}
	d.Differing, d.Weights, _ = count()
	return f.note(d, err)
}

// differingValues counts the values of width bytes that differ in n bytes of a and b.
func differingValues(ctx context.Context, a, b io.ReaderAt, n int64, width int) (differing int64, err error) {
	err = streams.SideBySide(ctx, a, b, n, func(_ int64, x, y []byte) bool {
		for i := 0; i < len(x); i += width {
			if end := min(i+width, len(x)); !bytes.Equal(x[i:end], y[i:end]) {
				differing++
			}
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	return differing, nil
}
