// Package describe measures models: exponent counts, entropy, bits per weight against the bound, and what the stored bytes are
// for. It gathers these figures from samples of a source or a DF11 model; it changes and verifies nothing, and draws no charts.
package describe

import (
	"context"
	"maps"
	"slices"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/estimate"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Source describes a source: its types, and what DF11 makes of its units, judged from samples of about maxBytes.
func Source(ctx context.Context, src model.Source, m *model.Model, p *plan.Plan, maxBytes int64) (*Report, error) {
	e, err := estimate.Sample(ctx, src, p, maxBytes)
	if err != nil {
		return nil, err
	}
	r := Refused(m, nil)
	r.Layout, r.Entry = string(p.Layout), p.Entry
	r.Exact, r.DF11Bytes = e.Exact, e.OutputBytes
	sizes := Parts{}
	plain := slices.Clone(p.Remainder)
	for i, u := range p.Units {
		x := &e.Units[i]
		r.Units = append(r.Units, estimatedUnit(u, x))
		for _, t := range x.Coded {
			sizes[partOf[t.Name]] += t.NBytes
		}
		plain = append(plain, x.Plain(u)...)
	}
	for _, t := range plain {
		sizes[PartPlain] += t.SpoolBytes()
	}
	r.Parts = sizes.List(r.DF11Bytes)
	r.Finish()
	return r, nil
}

// Refused describes, as far as its headers go, a source that cannot be converted.
func Refused(m *model.Model, why error) *Report {
	r := &Report{Name: m.ID, Commit: m.Commit, Kind: KindSource}
	addFiles(r, m.Listing.Weights)
	r.BF16Bytes = r.Bytes
	if why != nil {
		r.Refused = why.Error()
		r.Finish()
	}
	return r
}

// estimatedUnit describes a unit by its samples.
func estimatedUnit(u plan.Unit, e *estimate.UnitEstimate) Unit {
	x := Unit{
		Path: u.Path, Tensors: len(u.Attrs), Weights: u.NElems(), Bytes: e.Bytes, NBits: e.Bits, LUTs: int(e.LUTs), Reason: e.BF16,
	}
	if e.Stats != nil {
		x.Histogram = e.Stats.Histogram
		x.setCodes(e.Stats.CodeBits)
	}
	x.Finish()
	return x
}

// addFiles counts weight files, and their tensors by type.
func addFiles(r *Report, weights []plan.WeightFile) {
	types := map[safetensors.DType]DType{}
	for _, w := range weights {
		r.Files, r.Bytes = r.Files+1, r.Bytes+w.Size
		for _, t := range w.Header.Tensors {
			d := types[t.DType]
			types[t.DType] = DType{
				Name: string(t.DType), Tensors: d.Tensors + 1, Elems: d.Elems + t.NElems(), Bytes: d.Bytes + t.NBytes(),
			}
		}
	}
	r.DTypes = slices.AppendSeq([]DType{}, maps.Values(types)) // Finish sorts them
}

// Parts adds up the stored bytes by the name of their part.
type Parts map[string]int64

// partOf names the part that each of a unit's six tensors belongs to, by the tensor's last name.
var partOf = map[string]string{
	encoder.NameLUTs: PartTables, encoder.NameSplitPositions: PartTables,
	encoder.NameEncodedExponent: PartExponents, encoder.NameSignMantissa: PartSignMantissa,
	encoder.NameOutputPositions: PartPlaces, encoder.NameGaps: PartPlaces,
}

// List gives the parts of total in the order of the charts. The bytes that are in no other part are headers.
func (s Parts) List(total int64) []Part {
	var list []Part
	for _, name := range []string{PartSignMantissa, PartExponents, PartPlaces, PartTables, PartPlain} {
		list = append(list, Part{Name: name, Bytes: s[name]})
		total -= s[name]
	}
	return append(list, Part{Name: PartHeaders, Bytes: max(0, total)})
}
