// Package inspect turns exponent counts and sizes of a model into figures (entropy, bits per weight against the bound,
// headroom below the limits) and draws them as a report page and as a picture. It does not read models: its caller counts.
package inspect

import (
	"cmp"
	"slices"

	"github.com/df11-convert/df11-convert/internal/gpus"
	"github.com/df11-convert/df11-convert/internal/human"
)

// Limits of DF11 (docs/format.md §9).
const (
	MaxExponent = 239       // larger ones are links between tables
	MaxLUTs     = 18        // rows of lookup tables, lengths included
	MaxChunk    = 23550     // weights that a chunk may hold
	maxWeights  = 1<<31 - 1 // of a unit
	chunkBits   = 8 * 4096  // of coded exponents in a chunk
	plainBits   = 8         // sign and mantissa, stored as they are
	bf16Bits    = 16        // what a weight takes in BF16
)

// Kind says what was inspected.
type Kind string

// Kinds of models.
const (
	Source Kind = "source" // a model to convert: what DF11 would make of it
	DF11   Kind = "df11"   // a DF11 model: what is stored
)

// Report describes a model.
type Report struct {
	Model

	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"` // of the inspected weight files
	DTypes  []DType `json:"dtypes"`
	Units   []Unit  `json:"units"`
	Weights int64   `json:"weights"` // in units
	Read    int64   `json:"weights_read"`
	Exact   bool    `json:"exact"` // all weights were read

	BF16Bytes int64  `json:"bf16_bytes"` // the whole model before
	DF11Bytes int64  `json:"df11_bytes"` // and after
	Parts     []Part `json:"parts"`      // of DF11Bytes

	Histogram Histogram `json:"histogram"` // of all units
	Rates               // means over the units, by weights
	Plain     *Plain    `json:"sign_mantissa,omitempty"` // nil if no weights were read
	Version   string    `json:"tool_version"`            // of df11-convert

	LargestBlock int64      `json:"largest_block_bytes"` // BF16 bytes of the largest unit that is decoded at once
	Sizes        []Size     `json:"sizes"`
	GPUs         []gpus.Fit `json:"gpus"`               // which hold the weights
	Verified     *Stamp     `json:"verified,omitempty"` // what the manifest says
}

// Plain is the measured entropy, in bits, of what DF11 stores as it is: of 1, 7 and 8 bits.
type Plain struct {
	Sign     float64 `json:"sign_entropy"`
	Mantissa float64 `json:"mantissa_entropy"`
	Both     float64 `json:"entropy"` // of sign and mantissa together
}

// Stamp is the verification that a model's manifest records. The report does not repeat it.
type Stamp struct {
	Version  string  `json:"tool_version"` // of the program that verified
	Source   string  `json:"source,omitempty"`
	Commit   string  `json:"source_commit,omitempty"`
	Manifest string  `json:"manifest_sha256"`
	Checks   []Check `json:"checks"`
}

// Check is one decoder's pass over the stored weights.
type Check struct {
	Method  string `json:"method"`  // "cpu" or "gpu"
	Decoder string `json:"decoder"` // in words
	Device  string `json:"device,omitempty"`
	Weights int64  `json:"weights"` // all 16 bits compared and equal
}

// Model names the model of a report and says how it fits DF11.
type Model struct {
	Name       string `json:"name"`
	Commit     string `json:"commit,omitempty"`
	Kind       Kind   `json:"kind"`
	Layout     string `json:"layout,omitempty"`
	Entry      string `json:"catalog_entry,omitempty"`
	Provenance string `json:"provenance,omitempty"`
	Refused    string `json:"not_convertible,omitempty"` // why the source cannot be converted
	Traps      []Trap `json:"traps,omitempty"`           // why the DF11 model would load wrongly
}

// Rates are the bits that a weight takes, beside the least that is possible.
type Rates struct {
	Entropy  float64 `json:"entropy"`   // bits per exponent: order-0 entropy of the unit's own distribution
	CodeBits float64 `json:"code_bits"` // bits per exponent that the code takes
	Bits     float64 `json:"bits"`      // bits per weight with everything that is stored for a unit
	Bound    float64 `json:"bound"`     // 8 + Entropy
}

// Trap is one way in which headers and config show that a DF11 model would load wrongly (docs/format.md §14).
type Trap struct {
	Name   string `json:"name"` // of a tensor, unit, pattern or file
	Kind   string `json:"trap"`
	Detail string `json:"detail"`
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

// Names of parts, as the charts know them.
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
	Why     string `json:"-"`                    // the reason in words that continue a sentence after "it"

	Histogram Histogram  `json:"histogram"` // of the weights that were read
	Lengths   [256]uint8 `json:"-"`         // code length by exponent
	Codes     []Code     `json:"codes"`     // the code table
	Bytes     int64      `json:"bytes"`     // stored, all six tensors
	NBits     int64      `json:"coded_bits"`
	LUTs      int        `json:"luts"` // rows of lookup tables
	Plain     Histogram  `json:"-"`    // of the bytes of sign and mantissa that were read
	Modules   []Module   `json:"modules,omitempty"`

	Rates
	Extremes
	Headroom Headroom `json:"headroom"`
}

// Module sums up the tensors of a unit whose names differ only in numbers, such as the up_proj of all experts. Its rates are
// those under the unit's code, with the module's share of what the unit stores for the decoder.
type Module struct {
	Name      string    `json:"name"` // "self_attn.q_proj", "experts.*.up_proj"; "" for the unit's own weight
	Tensors   int       `json:"tensors"`
	Weights   int64     `json:"weights"`
	Read      int64     `json:"weights_read"`
	Histogram Histogram `json:"-"`
	Rates               // zero if no weights were read
}

// finish computes the rates of a module of the finished unit u.
func (m *Module) finish(u *Unit) {
	if m.Read = int64(m.Histogram.Total()); m.Read == 0 || u.CodeBits == 0 {
		return
	}
	var bits float64
	for e, n := range m.Histogram {
		length := float64(u.Lengths[e])
		if length == 0 { // not in the samples that gave the code
			length = float64(u.Longest)
		}
		bits += float64(n) * length
	}
	m.Entropy, m.CodeBits = m.Histogram.Entropy(), bits/float64(m.Read)
	m.Bits, m.Bound = u.Bits+m.CodeBits-u.CodeBits, plainBits+m.Entropy
	if len(u.Modules) == 1 {
		m.Rates = u.Rates
	}
}

// Extremes are the measures of a unit that the format limits.
type Extremes struct {
	Longest int `json:"longest_code"`
	// LargestChunk is the number of weights in the fullest chunk; for a source it is the mean, since only encoding shows the
	// fullest.
	LargestChunk    int `json:"largest_chunk"`
	LargestExponent int `json:"largest_exponent"`
}

// Code is one line of a code table.
type Code struct {
	Exponent int     `json:"exponent"`
	Bits     int     `json:"bits"`
	Share    float64 `json:"share"` // of the weights that were read
}

// Headroom is the room left below DF11's limits.
type Headroom struct {
	Exponents int   `json:"exponents"`
	LUTs      int   `json:"luts"`
	Chunk     int   `json:"chunk_weights"`
	Weights   int64 `json:"weights"`
}

// Finish computes the figures that follow from histogram, code lengths and sizes.
func (u *Unit) Finish() {
	u.Bits = bf16Bits
	if u.Weights > 0 && u.Bytes > 0 {
		u.Bits = 8 * float64(u.Bytes) / float64(u.Weights)
	}
	total := float64(u.Histogram.Total())
	for e, n := range u.Lengths {
		if n == 0 {
			continue
		}
		c := Code{Exponent: e, Bits: int(n)}
		if total > 0 {
			c.Share = float64(u.Histogram[e]) / total
		}
		u.Codes = append(u.Codes, c)
		u.Longest, u.LargestExponent = max(u.Longest, int(n)), e
	}
	if total > 0 {
		u.Entropy = u.Histogram.Entropy()
		u.Bound = plainBits + u.Entropy
		_, u.LargestExponent = u.Histogram.bounds()
	}
	if u.Weights > 0 && u.NBits > 0 {
		u.CodeBits = float64(u.NBits) / float64(u.Weights)
	}
	if u.LargestChunk == 0 && u.CodeBits > 0 {
		u.LargestChunk = int(min(float64(u.Weights), chunkBits/u.CodeBits))
	}
	u.Codes = some(u.Codes)
	u.Headroom = Headroom{MaxExponent - u.LargestExponent, MaxLUTs - u.LUTs, MaxChunk - u.LargestChunk, maxWeights - u.Weights}
	for i := range u.Modules {
		u.Modules[i].finish(u)
	}
}

func some[T any](list []T) []T { return append([]T{}, list...) }

// Finish sorts the units for reading and sums them up. Every unit must be finished. No list is nil then, so that JSON has arrays.
func (r *Report) Finish() {
	slices.SortStableFunc(r.Units, func(a, b Unit) int { return human.CompareNames(a.Path, b.Path) })
	var coded, bytes, nBits int64
	var entropy float64
	var plain Histogram
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
		plain.merge(&u.Plain, 1)
		r.LargestBlock = max(r.LargestBlock, 2*u.Weights)
		entropy += u.Entropy * float64(u.Weights)
		coded, bytes, nBits = coded+u.Weights, bytes+u.Bytes, nBits+u.NBits
	}
	if coded > 0 {
		r.Entropy = entropy / float64(coded)
		r.CodeBits = float64(nBits) / float64(coded)
		r.Bits = 8 * float64(bytes) / float64(coded)
		r.Bound = plainBits + r.Entropy
	}
	r.Plain = plain.plain()
	if r.DF11Bytes > 0 && coded > 0 {
		r.Sizes, r.GPUs = r.sizes(coded), gpus.Fits(r.BF16Bytes, r.DF11Bytes, r.LargestBlock)
	}
	slices.SortFunc(r.DTypes, func(a, b DType) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	r.Parts = slices.DeleteFunc(r.Parts, func(p Part) bool { return p.Bytes == 0 })
	r.DTypes, r.Units, r.Parts = some(r.DTypes), some(r.Units), some(r.Parts)
	r.Sizes, r.GPUs = some(r.Sizes), some(r.GPUs)
}
