package plan

import (
	"cmp"
	"fmt"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Versions of DF11 that new repos state: the official one (docs/format.md §12), and the one with
// parameters as units (docs/format.md §17).
const (
	FormatVersion     = "0.5.0"
	ParametersVersion = FormatVersion + "+parameters"
)

// A Plan is the whole decision about one conversion. Only [New] changes it.
type Plan struct {
	Layout catalog.Layout // layout of the output
	// ID of the catalog's entry that has the dict, or whose names and ties apply to a given one; ""
	// if there is none
	Entry       string
	Loader      catalog.Loader      // how to load the model
	PatternDict catalog.PatternDict // as config.json states it
	// the caller asked for the entry, although the source doesn't fit it
	Unlike bool
	// where the dict comes from: "published:…", "derived:…", "given", or "derived" from headers
	// alone
	Provenance string

	Units []Unit // by pattern, then by module
	// for each unit that no reader can fill, the reason; see [Options.Unfilled]
	Unfilled []string
	ByNode   bool // the ComfyUI node loads the class, by a pattern dict of its own

	Rest                     // tensors outside the units
	OutputFiles []OutputFile // every safetensors file of the output, unit files first

	// path of the source's config.json, if the dict goes into it; "" if there will be a new file
	// (docs/format.md §12)
	Config string
	Carried

	Changes
	Notes

	source     Source
	readsFor   string // Options.For
	incomplete string // why a pipeline doesn't load with the output; "" if it does
}

// Rest is the tensors that lie in no unit, and their files.
type Rest struct {
	Remainder []Tensor // in the order of the files
	// at least one file, even if it's empty; in single layouts the one file of everything
	RemainderFiles []OutputFile
	RemainderIndex string // path of the remainder's index; "" if there is one file
}

// Changes says how the output's tensors differ from the source's.
type Changes struct {
	Aliases []Alias  // tensors that aren't stored, because another holds the same values
	Dropped []Tensor // tensors outside the converted model in a single-file checkpoint
	// units are smaller than usual, because a layer would exceed DF11's limit
	Split          bool
	TiedEmbeddings bool // head and embedding share one matrix
}

// Notes are what the user should know about a plan.
type Notes struct {
	// where the output differs from the official route, and why
	Differences []string `json:"differences,omitempty"`
	Warnings    []string `json:"warnings,omitempty"` // what may go wrong
	// the Warnings about what readers of the source open and the output lacks
	Lacks []string `json:"-"`
	// which other part of the pipeline stays BF16 although it has the same class, and how to
	// compress it
	Twin string `json:"-"`
	// whether the official loader and the ComfyUI node load the output
	Readers []Reader `json:"readers,omitempty"`
}

func (n *Notes) warn(format string, args ...any) {
	n.Warnings = append(n.Warnings, human.Message(format, args...))
}

// lack warns of files that the output lacks.
func (n *Notes) lack(format string, args ...any) {
	n.warn(format, args...)
	n.Lacks = append(n.Lacks, n.Warnings[len(n.Warnings)-1])
}

// differ notes a difference from the official route's output.
func (n *Notes) differ(format string, args ...any) {
	n.Differences = append(n.Differences, human.Message(format, args...))
}

// Derived reports whether the dict was derived from headers alone.
func (p *Plan) Derived() bool { return p.Provenance == "derived" }

// ConfigPath returns the path of the output's config.json.
func (p *Plan) ConfigPath() string { return cmp.Or(p.Config, names.Config) }

// A Unit is one module that is compressed as a whole (docs/format.md §1).
type Unit struct {
	Path     string   // module path, in the output's names
	File     string   // output file that holds its tensors
	Pattern  int      // index in Plan.PatternDict
	Attrs    []Tensor // BF16 weights in encoding order, 2-D unless they're parameters
	Siblings []Tensor // other tensors of the module, copied unchanged into the same file
	// why DF11 can't hold it, as far as headers show: "too_large", "empty", or ""
	Unholdable string
}

// NElems returns the number of weights of the unit.
func (u Unit) NElems() int64 { return sum(u.Attrs, Tensor.NElems) }

// Sizes returns the number of weights of each attribute, in encoding order.
func (u Unit) Sizes() []int64 {
	sizes := make([]int64, len(u.Attrs))
	for i, t := range u.Attrs {
		sizes[i] = t.NElems()
	}
	return sizes
}

// A Tensor is a tensor of the source and the location of its bytes.
type Tensor struct {
	Name   string // name in the output
	Source string // name in the source
	// attribute of a unit that it is the weight of: "mlp.up_proj"; "" for a unit's own weight
	Attr string
	// a unit holds it, and it isn't the 2-D weight of a module (docs/format.md §17)
	Parameter bool
	// name in the output of the parameter that it's a slice of; "" if it's a whole tensor
	SliceOf string
	DType   safetensors.DType // type in the source
	Shape   []int64
	File    int   // index in Source.Weights
	Offset  int64 // first byte in that file
	Length  int64 // bytes in that file
	// F32 whose values must all be exact in BF16: the conversion takes the upper halves, and refuses
	// other values
	ExactF32 bool
}

// NElems returns the number of elements.
func (t Tensor) NElems() int64 { return safetensors.Tensor{Shape: t.Shape}.NElems() }

func (t Tensor) length() int64 { return t.Length }

// StoredDType returns the type of a plain tensor in the output: the source's, or BF16 for exact
// F32.
func (t Tensor) StoredDType() safetensors.DType {
	if t.ExactF32 {
		return safetensors.BF16
	}
	return t.DType
}

// SpoolBytes returns the size of the tensor in a spool and, if it's plain, in the output. F32 that
// is exact BF16 is narrowed before.
func (t Tensor) SpoolBytes() int64 {
	if t.ExactF32 {
		return t.Length / 2
	}
	return t.Length
}

// An OutputFile is one safetensors file of the output. For each unit it has the six tensors and the
// siblings, or the plain weights and the siblings if DF11 can't hold the unit. Then come the plain
// tensors.
type OutputFile struct {
	Path     string
	Units    []int // indices in Plan.Units
	Plain    []Tensor
	Metadata []safetensors.MetadataEntry
}

// A Skipped is a file of the source that isn't copied.
type Skipped struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	// a reader of the source opens it
	Lost bool `json:"lost,omitempty"`
}

// An Alias is a tensor of the source that isn't stored, because the loader uses Of for it. The
// caller must compare the bytes of both, and refuse the model if they differ.
type Alias struct {
	Tensor Tensor // stored in the source, not in the output
	Of     Tensor // stored in the output
}

// maxUnits is enough for 60 layers of 384 experts (docs/format.md §16).
const maxUnits = 32_768

// checkUnits refuses more units than a plan has room for, and more tensors in the output than
// readers accept.
func (p *Plan) checkUnits() error {
	stored := len(encoder.ArrayNames())*len(p.Units) + len(p.plainTensors())
	if len(p.Units) > maxUnits || stored > safetensors.MaxTensors {
		return refuse(hint.TooManyUnits, "the output would have %d modules and %d tensors: "+
			"more than %d or %d", len(p.Units), stored, maxUnits, safetensors.MaxTensors)
	}
	return nil
}

// markUnholdable marks the units that DF11 can't hold, as far as headers show. It refuses a model
// without other units.
func (p *Plan) markUnholdable() error {
	var names []string
	for i := range p.Units {
		u := &p.Units[i]
		switch n := u.NElems(); {
		case n == 0:
			u.Unholdable = "empty"
		case n > maxElems || n < 0:
			u.Unholdable = "too_large"
		default:
			continue
		}
		names = append(names, u.Path)
	}
	if len(names) == len(p.Units) {
		return refuse(hint.TooLarge,
			"DF11 can hold none of the %s: %s", count(len(names), "module"), human.List(names))
	}
	if len(names) > 0 {
		p.warn("left in BF16, because DF11 can't hold them: %s", count(len(names), "module"))
	}
	return nil
}

// Source returns what the plan was made from.
func (p *Plan) Source() Source { return p.source }

// SourceBytes returns the bytes of all weight files: what a conversion reads.
func (p *Plan) SourceBytes() int64 {
	return p.source.WeightBytes()
}

// UnitBytes returns the bytes of all weights in units, in the source.
func (p *Plan) UnitBytes() int64 {
	return sum(p.Units, func(u Unit) int64 { return sum(u.Attrs, Tensor.length) })
}

// PlainBytes returns the bytes of all tensors that pass through: siblings and remainder.
func (p *Plan) PlainBytes() int64 { return sum(p.plainTensors(), Tensor.length) }

// LargestModule returns the BF16 size of the largest module that becomes DF11: the loader decodes
// into a buffer of that size. staysBF16 reports whether a module, by its index in Units, stays
// BF16.
func (p *Plan) LargestModule(staysBF16 func(i int) bool) (nBytes int64) {
	for i, u := range p.Units {
		if !staysBF16(i) {
			nBytes = max(nBytes, 2*u.NElems())
		}
	}
	return nBytes
}

// plainTensors lists all tensors that pass through: siblings by unit, then the remainder.
func (p *Plan) plainTensors() []Tensor {
	var out []Tensor
	for _, u := range p.Units {
		out = append(out, u.Siblings...)
	}
	return append(out, p.Remainder...)
}

// count puts a number before a noun, and adds an s unless the number is 1.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sum adds up a number of each element.
func sum[T any](list []T, of func(T) int64) (n int64) {
	for _, x := range list {
		n += of(x)
	}
	return n
}

// RefusedError says that a source can't be converted as asked.
type RefusedError = catalog.RefusedError

// refuseDF11 refuses a source that is a DF11 model.
func refuseDF11(detail string) error {
	return &RefusedError{Detail: detail, Hint: hint.IsDF11, Next: "check_instead"}
}

// refuse returns a RefusedError. It formats the detail.
func refuse(h hint.Hint, format string, args ...any) error {
	return catalog.Refuse(h, format, args...)
}
