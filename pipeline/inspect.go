package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/model"
)

// InspectOptions say how to measure a DF11 model.
type InspectOptions struct {
	Means
	// Page is the file that the caller will write an HTML page to, or "" for none.
	Page string
}

// An Inspection is what was measured of a DF11 model. Its JSON is that of the command,
// docs/output.schema.json.
type Inspection struct {
	Name   string `json:"name"`
	Commit string `json:"commit,omitempty"`
	Traps  []Trap `json:"traps,omitempty"` // why the model would load wrongly

	Files     int   `json:"files"`
	BF16Bytes int64 `json:"bf16_bytes"` // the whole model before
	DF11Bytes int64 `json:"df11_bytes"` // and after: the size of its weight files
	Parts     Parts `json:"parts"`

	Units     []InspectedUnit `json:"units"`
	Weights   int64           `json:"weights"` // in units
	Read      int64           `json:"weights_read"`
	Histogram [256]uint64     `json:"histogram"` // over all units, by exponent
	Rates                     // means over the units, by weights

	// Page is HTML, if the options ask for it. By PageMode, nobody can read it there who can't read
	// a local model's files.
	Page     []byte      `json:"-"`
	PageMode fs.FileMode `json:"-"`
}

// A Trap is why a model would load wrongly.
type Trap struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// Parts are the bytes of a DF11 model by purpose.
type Parts struct {
	SignMantissa int64 `json:"sign_mantissa"`
	Exponents    int64 `json:"exponents"`
	// Decoder is tables, gaps, positions, and file headers: everything that is in no other part.
	Decoder   int64 `json:"decoder"`
	Unchanged int64 `json:"unchanged"`
}

// Rates are the bits per weight, and the least that is possible.
type Rates struct {
	// Entropy is the order-0 entropy of the exponents, in bits, and CodeBits what the code takes.
	Entropy  float64 `json:"entropy"`
	CodeBits float64 `json:"code_bits"`
	Bits     float64 `json:"bits"`  // per weight, including everything stored for a unit
	Bound    float64 `json:"bound"` // 8 + Entropy
}

// An InspectedUnit is what was measured of one module.
type InspectedUnit struct {
	Path    string `json:"path"`
	Weights int64  `json:"weights"`
	Bytes   int64  `json:"bytes"` // stored, all six tensors
	NBits   int64  `json:"coded_bits"`
	// CodeLengths are the bits of each exponent's code; 0 if it has none.
	CodeLengths [256]uint8 `json:"code_lengths"`
	Rates
}

// Inspect measures a DF11 model: sizes, modules, entropy, and bits per weight. It samples the
// weights of large models. It verifies nothing.
func Inspect(ctx context.Context, df11 string, opt InspectOptions) (*Inspection, error) {
	found, err := inspect(ctx, df11, opt)
	if err := opt.ended(ctx, err); err != nil {
		return nil, err
	}
	return found, nil
}

func inspect(ctx context.Context, name string, opt InspectOptions) (_ *Inspection, err error) {
	s, err := opt.Means.begin(budget.ForReading)
	if err != nil {
		return nil, err
	}
	defer s.close()
	defer func() { err = s.judged(err) }()
	d, err := s.openDF11(ctx, name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	r, err := describe.DF11(ctx, d)
	if err != nil {
		return nil, hintSource(fmt.Errorf("inspect %s: %w", name, err), name)
	}
	if model.Exists(name) {
		r.Name = filepath.Base(filepath.Clean(name))
	}
	found := inspectionOf(r)
	if opt.Page != "" {
		found.PageMode = d.Perm(filepath.Dir(opt.Page))
		found.Page, err = charts.HTML(r, s.Version)
	}
	return found, err
}

// inspectionOf returns a report in plain types.
func inspectionOf(r *describe.Report) *Inspection {
	found := &Inspection{
		Name: r.Name, Commit: r.Commit, Files: r.Files, BF16Bytes: r.BF16Bytes,
		DF11Bytes: r.DF11Bytes, Parts: Parts(r.Parts), Units: []InspectedUnit{}, Weights: r.Weights,
		Read: r.Read, Histogram: r.Histogram, Rates: Rates(r.Rates),
	}
	for _, t := range r.Traps {
		found.Traps = append(found.Traps, Trap(t))
	}
	for _, u := range r.Units {
		found.Units = append(found.Units, InspectedUnit{u.Path, u.Weights, u.Bytes, u.NBits,
			u.CodeLengths, Rates(u.Rates)})
	}
	return found
}
