// Package describe gathers what is known of a model, a source or DF11, into the report that package inspect draws. It
// changes nothing, and it verifies nothing: a sample of the weights is enough for it.
package describe

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/estimate"
	"github.com/df11-convert/df11-convert/internal/exactf32"
	"github.com/df11-convert/df11-convert/internal/inspect"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Source describes a source: its types, and what DF11 makes of its units, judged from samples of about maxBytes.
func Source(ctx context.Context, src model.Source, m *model.Model, p *plan.Plan, maxBytes int64) (*inspect.Report, error) {
	tallies := make([]*tally, len(p.Units))
	for i, u := range p.Units {
		names := make([]string, len(u.Attrs))
		for j, t := range u.Attrs {
			names[j] = t.Attr
		}
		tallies[i] = newTally(names, u.Sizes())
	}
	e, err := estimate.SampleSeen(ctx, src, p, maxBytes, func(unit int, elem int64, bf16 []byte) { tallies[unit].add(elem, bf16) })
	if err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(unitsAtOnce)
	for i, u := range p.Units {
		g.Go(func() error {
			return tallies[i].missed(func(elem, n int64, buf []byte) error {
				return streams.ReadFull(exactf32.NewReader(gctx, src, u, &exactf32.Count{}), buf, 2*elem)
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	r := Refused(m, nil)
	r.Layout, r.Entry, r.Provenance = string(p.Layout), p.Entry, p.Provenance
	r.Exact, r.DF11Bytes = e.Exact, e.OutputBytes
	sizes := Parts{}
	plain := slices.Clone(p.Remainder)
	for i, u := range p.Units {
		x := &e.Units[i]
		r.Units = append(r.Units, estimatedUnit(u, x, tallies[i]))
		for _, t := range x.Coded {
			sizes[partOf[t.Name]] += t.NBytes
		}
		plain = append(plain, x.Plain(u)...)
	}
	for _, t := range plain {
		sizes[inspect.PartPlain] += t.SpoolBytes()
	}
	r.Parts = sizes.List(r.DF11Bytes)
	r.Finish()
	return r, nil
}

// Refused describes, as far as its headers go, a source that cannot be converted.
func Refused(m *model.Model, why error) *inspect.Report {
	r := &inspect.Report{Model: inspect.Model{Name: m.ID, Commit: m.Commit, Kind: inspect.Source}}
	addFiles(r, m.Listing.Weights)
	r.BF16Bytes = r.Bytes
	if why != nil {
		r.Refused = why.Error()
		r.Finish()
	}
	return r
}

// estimatedUnit describes a unit by its samples.
func estimatedUnit(u plan.Unit, e *estimate.UnitEstimate, t *tally) inspect.Unit {
	x := inspect.Unit{
		Path: u.Path, Tensors: len(u.Attrs), Weights: u.NElems(), Bytes: e.Bytes, NBits: e.Bits, LUTs: int(e.LUTs),
		Reason: e.BF16, Why: metadata.ReasonText(e.BF16), Modules: t.modules, Plain: t.plain,
	}
	if e.Stats != nil {
		x.Histogram, x.Lengths = e.Stats.Histogram, e.Stats.CodeBits
	}
	x.Finish()
	return x
}

// addFiles counts weight files, and their tensors by type.
func addFiles(r *inspect.Report, weights []plan.WeightFile) {
	types := map[safetensors.DType]inspect.DType{}
	for _, w := range weights {
		r.Files, r.Bytes = r.Files+1, r.Bytes+w.Size
		for _, t := range w.Header.Tensors {
			d := types[t.DType]
			types[t.DType] = inspect.DType{
				Name: string(t.DType), Tensors: d.Tensors + 1, Elems: d.Elems + t.NElems(), Bytes: d.Bytes + t.NBytes(),
			}
		}
	}
	r.DTypes = slices.AppendSeq([]inspect.DType{}, maps.Values(types)) // Finish sorts them
}

// Parts adds up the stored bytes by the name of their part.
type Parts map[string]int64

// partOf names the part that each of a unit's six tensors belongs to, by the tensor's last name.
var partOf = map[string]string{
	encoder.NameLUTs: inspect.PartTables, encoder.NameSplitPositions: inspect.PartTables,
	encoder.NameEncodedExponent: inspect.PartExponents, encoder.NameSignMantissa: inspect.PartSignMantissa,
	encoder.NameOutputPositions: inspect.PartPlaces, encoder.NameGaps: inspect.PartPlaces,
}

// List gives the parts of total in the order of the charts. The bytes that are in no other part are headers.
func (s Parts) List(total int64) []inspect.Part {
	var list []inspect.Part
	for _, name := range []string{inspect.PartSignMantissa, inspect.PartExponents, inspect.PartPlaces, inspect.PartTables, inspect.PartPlain} {
		list = append(list, inspect.Part{Name: name, Bytes: s[name]})
		total -= s[name]
	}
	return append(list, inspect.Part{Name: inspect.PartHeaders, Bytes: max(0, total)})
}
