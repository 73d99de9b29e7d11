package plan

import (
	"cmp"
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Versions of DF11 that new repos state: the official one (docs/format.md §12), and the one with
// parameters as units (docs/format.md §17).
const (
	FormatVersion     = "0.5.0"
	ParametersVersion = FormatVersion + "+parameters"
)

// New makes the plan of a conversion. It returns a *RefusedError if the source can't be converted
// as asked. Any other error means that ctx has ended, or that the input isn't what [Survey] asks
// for.
func New(ctx context.Context, src Source, opt Options) (*Plan, error) {
	notes := &Notes{}
	read, err := readSource(src, opt)
	if err != nil {
		return nil, err
	}
	listed, err := takeInventory(ctx, read, notes)
	if err != nil {
		return nil, err
	}
	model, err := recognize(ctx, read, listed)
	if err != nil {
		return nil, err
	}
	tensors, err := conform(ctx, read, model, listed, notes)
	if err != nil {
		return nil, err
	}
	dict, err := makeDict(ctx, read, model, tensors, notes)
	if err != nil {
		return nil, err
	}
	units, err := formUnits(ctx, read, model, tensors, dict, notes)
	if err != nil {
		return nil, err
	}
	files, err := placeFiles(ctx, read, model.layout, units, notes)
	if err != nil {
		return nil, err
	}
	readers, err := askReaders(&output{units, read, model, dict, tensors.tied, files.parts.lacking}, notes)
	if err != nil {
		return nil, err
	}
	code := findCode(read, files, readers.loader, notes)
	p := assemble(read, model, tensors, dict, units, files, readers, notes)
	p.Code = code
	return p, nil
}

// assemble puts the results of the steps together.
func assemble(r *reading, m *recognition, c *checkpoint, d *dictionary, v *division, f *placement,
	readers *verdicts, notes *Notes) *Plan {
	p := &Plan{
		Layout:      m.layout,
		Loader:      readers.loader,
		PatternDict: d.patterns,
		Unlike:      m.unlike,
		Provenance:  m.provenance,
		Units:       v.units,
		Unfilled:    readers.unfilled,
		ByNode:      m.node != nil,
		Rest:        Rest{v.remainder, f.remainder, f.remainderIndex},
		OutputFiles: f.outputs,
		Config:      f.config,
		Carried:     f.carried,
		Changes:     Changes{v.aliases, c.inv.dropped, d.split, c.tied},
		Notes:       *notes,
		source:      r.source,
		readsFor:    r.opt.For,
	}
	if m.entry != nil {
		p.Entry = m.entry.ID
	}
	for _, out := range f.outputs {
		for _, i := range out.Units {
			p.Units[i].File = out.Path
		}
	}
	p.Readers, p.Twin = readers.readers, f.parts.twin
	if no := p.NoLoader(); no != "" { // before all other warnings
		p.Warnings = slices.Insert(p.Warnings, 0, no)
	}
	return p
}

// A Plan is the whole decision about one conversion. [New] makes it, and nothing changes it after.
type Plan struct {
	Layout catalog.Layout // layout of the output
	// ID of the catalog's entry that has the dict, or whose names and ties apply to a given one; ""
	// if there is none
	Entry       string
	Loader      catalog.Loader      // how to load the model
	Code        Code                // what the loader runs, if the code is trusted
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

	source   Source
	readsFor string // Options.For
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

// derived is the provenance of a dict that was made only from headers.
const derived = "derived"

// Derived reports whether the dict was made only from headers.
func (p *Plan) Derived() bool { return p.Provenance == derived }

// ConfigPath returns the path of the output's config.json.
func (p *Plan) ConfigPath() string { return cmp.Or(p.Config, names.Config) }

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

// PlainF32 returns the size of the F32 tensors that pass through.
func (p *Plan) PlainF32() (nBytes int64) {
	for _, t := range p.plainTensors() {
		if t.DType == safetensors.F32 {
			nBytes += t.Length
		}
	}
	return nBytes
}

// LargestModule returns the BF16 size of the largest module that becomes DF11: the loader decodes
// into a buffer of that size. staysBF16 reports whether a module, by its index in Units, stays
// BF16.
func (p *Plan) LargestModule(staysBF16 func(i int) bool) (nBytes int64) {
	for i, u := range p.Units {
		if !staysBF16(i) {
			nBytes = max(nBytes, u.NBytes())
		}
	}
	return nBytes
}

// plainTensors lists all tensors that pass through: siblings by unit, then the remainder.
func (p *Plan) plainTensors() []Tensor { return plainTensors(p.Units, p.Remainder) }
