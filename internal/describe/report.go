package describe

import (
	"slices"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/model"
)

// plainBits is the size of a weight's sign and mantissa, which are stored as they are.
const plainBits = 8

// Report describes a DF11 model. Finish computes Weights, Read, Histogram, Rates,
// and Parts.Decoder.
type Report struct {
	Name   string          `json:"name"`
	Commit string          `json:"commit,omitempty"`
	Traps  []model.Problem `json:"traps,omitempty"` // why the model would load wrongly

	Files     int   `json:"files"`
	BF16Bytes int64 `json:"bf16_bytes"` // the whole model before
	DF11Bytes int64 `json:"df11_bytes"` // and after: the size of its weight files
	Parts     Parts `json:"parts"`

	Units     []Unit    `json:"units"`
	Weights   int64     `json:"weights"` // in units
	Read      int64     `json:"weights_read"`
	Histogram Histogram `json:"histogram"` // over all units, by exponent
	Rates               // means over the units, by weights
}

// Rates are the bits per weight, and the least that is possible.
type Rates struct {
	// bits per exponent: order-0 entropy of the unit's own distribution
	Entropy  float64 `json:"entropy"`
	CodeBits float64 `json:"code_bits"` // bits per exponent that the code takes
	Bits     float64 `json:"bits"`      // bits per weight, including everything stored for a unit
	Bound    float64 `json:"bound"`     // 8 + Entropy
}

// Parts are the bytes of a DF11 model by purpose.
type Parts struct {
	SignMantissa int64 `json:"sign_mantissa"`
	Exponents    int64 `json:"exponents"`
	// tables, gaps, positions, and file headers: everything that is in no other part
	Decoder   int64 `json:"decoder"`
	Unchanged int64 `json:"unchanged"`
}

// Part is a share of a model's bytes.
type Part struct {
	Name  string
	Bytes int64
}

// List names the parts for readers.
func (p Parts) List() []Part {
	return []Part{{"sign and mantissa", p.SignMantissa}, {"coded exponents", p.Exponents},
		{"decoder tables", p.Decoder}, {"unchanged", p.Unchanged}}
}

// Unit describes one unit of a model.
type Unit struct {
	Path      string    `json:"path"`
	Weights   int64     `json:"weights"`
	Histogram Histogram `json:"-"`     // of the weights that were read
	Bytes     int64     `json:"bytes"` // stored, all six tensors
	NBits     int64     `json:"coded_bits"`
	// bits of each exponent's code; 0 if it has none
	CodeLengths [256]uint8 `json:"code_lengths"`
	Rates
}

// Finish computes Rates from the histogram and the sizes.
func (u *Unit) Finish() { u.Rates = rates(u.Histogram.Entropy(), u.Weights, u.NBits, u.Bytes) }

func rates(entropy float64, weights, codedBits, bytes int64) Rates {
	n := float64(max(1, weights))
	return Rates{Entropy: entropy, CodeBits: float64(codedBits) / n, Bits: 8 * float64(bytes) / n,
		Bound: plainBits + entropy}
}

// Finish sorts the units for reading and sums them up. Call it after Finish of every unit.
func (r *Report) Finish() {
	slices.SortStableFunc(r.Units,
		func(a, b Unit) int { return human.CompareNames(a.Path, b.Path) })
	r.Parts.Decoder = max(0, r.DF11Bytes-r.Parts.SignMantissa-r.Parts.Exponents-r.Parts.Unchanged)
	var bytes, nBits int64
	var entropy float64
	for i := range r.Units {
		u := &r.Units[i]
		r.Weights += u.Weights
		bytes, nBits, entropy = bytes+u.Bytes, nBits+u.NBits, entropy+u.Entropy*float64(u.Weights)
		if total := u.Histogram.Total(); total > 0 {
			r.Read += int64(total)
			r.Histogram.merge(&u.Histogram, float64(u.Weights)/float64(total))
		}
	}
	if r.Weights > 0 {
		r.Rates = rates(entropy/float64(r.Weights), r.Weights, nBits, bytes)
	}
}
