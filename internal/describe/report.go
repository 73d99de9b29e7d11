package describe

import (
	"cmp"
	"slices"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/plan"
)

const (
	plainBits = 8  // sign and mantissa, stored as they are
	bf16Bits  = 16 // what a weight takes in BF16
)

// Kind says what a report describes.
type Kind string

// Kinds of models.
const (
	KindSource Kind = "source" // a model to convert: what DF11 would make of it
	KindDF11   Kind = "df11"   // a DF11 model: what is stored
)

// Report describes a model. Weights, Read, Histogram and Rates are Finish's.
type Report struct {
	Name    string         `json:"name"`
	Commit  string         `json:"commit,omitempty"`
	Kind    Kind           `json:"kind"`
	Layout  string         `json:"layout,omitempty"`
	Entry   string         `json:"catalog_entry,omitempty"`
	Refused string         `json:"not_convertible,omitempty"` // why the source cannot be converted
	Traps   []plan.Problem `json:"traps,omitempty"`           // why the DF11 model would load wrongly

	Files     int     `json:"files"`
	Bytes     int64   `json:"bytes"` // of the described weight files
	DTypes    []DType `json:"dtypes"`
	BF16Bytes int64   `json:"bf16_bytes"` // the whole model before
	DF11Bytes int64   `json:"df11_bytes"` // and after
	Parts     []Part  `json:"parts"`      // of DF11Bytes

	Units     []Unit    `json:"units"`
	Weights   int64     `json:"weights"` // in units
	Read      int64     `json:"weights_read"`
	Exact     bool      `json:"exact"`     // all weights were read
	Histogram Histogram `json:"histogram"` // of all units
	Rates               // means over the units, by weights

	Version string `json:"tool_version"` // of df11-convert
}

// Rates are the bits that a weight takes, beside the least that is possible.
type Rates struct {
	Entropy  float64 `json:"entropy"`   // bits per exponent: order-0 entropy of the unit's own distribution
	CodeBits float64 `json:"code_bits"` // bits per exponent that the code takes
	Bits     float64 `json:"bits"`      // bits per weight with everything that is stored for a unit
	Bound    float64 `json:"bound"`     // 8 + Entropy
}

// DType sums up the stored tensors of one type.
type DType struct {
	Name    string `json:"dtype"`
	Tensors int    `json:"tensors"`
	Elems   int64  `json:"elements"`
	Bytes   int64  `json:"bytes"`
}

// Part is a share of the stored bytes.
type Part struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Names of parts.
const (
	PartSignMantissa = "sign and mantissa"
	PartExponents    = "coded exponents"
	PartPlaces       = "gaps and positions"
	PartTables       = "lookup tables and splits"
	PartPlain        = "unchanged tensors"
	PartHeaders      = "file headers"
)

// Unit describes one unit of a model.
type Unit struct {
	Path    string `json:"path"`
	Tensors int    `json:"tensors"`
	Weights int64  `json:"weights"`
	Reason  string `json:"stays_bf16,omitempty"` // why it is not compressed, as the manifest has it

	Histogram Histogram `json:"histogram"` // of the weights that were read
	Codes     []Code    `json:"codes"`     // the code table, by exponent
	Bytes     int64     `json:"bytes"`     // stored, all six tensors
	NBits     int64     `json:"coded_bits"`
	LUTs      int       `json:"luts"` // rows of lookup tables
	Longest   int       `json:"longest_code"`
	Rates
}

// Code is one line of a code table.
type Code struct {
	Exponent int `json:"exponent"`
	Bits     int `json:"bits"`
}

// setCodes takes the length of each exponent's code; 0 is none.
func (u *Unit) setCodes(lengths [256]uint8) {
	for e, n := range lengths {
		if n > 0 {
			u.Codes = append(u.Codes, Code{e, int(n)})
			u.Longest = max(u.Longest, int(n))
		}
	}
}

// Finish computes the figures that follow from histogram, codes and sizes.
func (u *Unit) Finish() {
	u.Bits = bf16Bits
	if u.Weights > 0 && u.Bytes > 0 {
		u.Bits = 8 * float64(u.Bytes) / float64(u.Weights)
	}
	if u.Histogram.Total() > 0 {
		u.Entropy = u.Histogram.Entropy()
		u.Bound = plainBits + u.Entropy
	}
	if u.Weights > 0 && u.NBits > 0 {
		u.CodeBits = float64(u.NBits) / float64(u.Weights)
	}
	u.Codes = some(u.Codes)
}

func some[T any](list []T) []T { return append([]T{}, list...) }

// Finish sorts the units for reading and sums them up. Every unit must be finished. No list is nil then, so that JSON has arrays.
func (r *Report) Finish() {
	slices.SortStableFunc(r.Units, func(a, b Unit) int { return human.CompareNames(a.Path, b.Path) })
	var coded, bytes, nBits int64
	var entropy float64
	for i := range r.Units {
		u := &r.Units[i]
		r.Weights += u.Weights
		total := u.Histogram.Total()
		r.Read += int64(total)
		if u.Reason != "" || u.Weights == 0 {
			continue
		}
		if total > 0 {
			r.Histogram.merge(&u.Histogram, float64(u.Weights)/float64(total))
		}
		entropy += u.Entropy * float64(u.Weights)
		coded, bytes, nBits = coded+u.Weights, bytes+u.Bytes, nBits+u.NBits
	}
	if coded > 0 {
		r.Entropy = entropy / float64(coded)
		r.CodeBits = float64(nBits) / float64(coded)
		r.Bits = 8 * float64(bytes) / float64(coded)
		r.Bound = plainBits + r.Entropy
	}
	slices.SortFunc(r.DTypes, func(a, b DType) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	r.Parts = slices.DeleteFunc(r.Parts, func(p Part) bool { return p.Bytes == 0 })
	r.DTypes, r.Units, r.Parts = some(r.DTypes), some(r.Units), some(r.Parts)
}
