// Package spans computes which source bytes each output file of a plan is made from, and where
// these bytes wait until then. It opens no files and starts no goroutines. The same plan always has
// the same spans.
package spans

import (
	"fmt"
	"iter"
	"slices"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// An Output is one output file as the plan lays it out. Its spool holds the weights of every unit
// in encoding order, then the copied tensors, then the aliases, all counted by one running offset.
type Output struct {
	Path     string
	Metadata []safetensors.MetadataEntry
	Units    []*Unit
	Copied   []Tensor
	Aliases  []Alias
	Size     int64 // bytes in the spool
	Index    int   // index in the plan's outputs

	narrows bool // some F32 tensor waits in the spool as BF16
}

// Unit is one unit of an output. At is the spool offset of its first weight. Index is its index in
// Output.Units.
type Unit struct {
	plan.Unit
	At    int64
	Index int
}

// Tensor is a tensor of the source. At is its offset in the spool.
type Tensor struct {
	plan.Tensor
	At int64
}

// Alias is a tensor that isn't stored, because it must equal Of (docs/format.md §15). Of is a weight
// of Unit, or a copied tensor if Unit is nil. Both wait in the spool of the output that stores Of.
type Alias struct {
	Tensor
	Of   Tensor
	Unit *Unit
}

// AliasError reports that two tensors that the model ties differ in the source. Byte is the first
// that differs, of what waits in the spool.
type AliasError struct {
	Name, Of string
	Byte     int64
}

func (e *AliasError) Error() string {
	return fmt.Sprintf("%s is tied to %s by the config or its class, but byte %d differs", e.Name,
		e.Of, e.Byte)
}

// Subject returns "pair", as model.OfPair: a DF11 model that stores one of the two can't restore
// both.
func (e *AliasError) Subject() string { return "pair" }

// Outputs lays out every output file of the plan, in the plan's order. It fails if any byte of a
// weight file would go nowhere: each belongs to the header, to a tensor that is stored, to an alias
// that is compared with the tensor it equals, or to a tensor that the plan leaves out and names.
func Outputs(p *plan.Plan) ([]*Output, error) {
	outputs := layOut(p)
	if err := account(p, outputs); err != nil {
		return nil, err
	}
	return outputs, nil
}

func layOut(p *plan.Plan) (outputs []*Output) {
	for i, f := range p.OutputFiles {
		o := &Output{Path: f.Path, Metadata: f.Metadata, Index: i}
		copied := f.Plain
		for _, u := range f.Units {
			o.addUnit(p.Units[u])
			copied = append(slices.Clone(p.Units[u].Siblings), copied...)
		}
		for _, t := range copied {
			o.Copied = append(o.Copied, o.place(t))
		}
		outputs = append(outputs, o)
	}
	addAliases(outputs, p.Aliases)
	return outputs
}

func (o *Output) addUnit(u plan.Unit) {
	o.Units = append(o.Units, &Unit{Unit: u, At: o.Size, Index: len(o.Units)})
	for _, a := range u.Attrs {
		o.place(a)
	}
}

// place reserves space in the spool for a tensor.
func (o *Output) place(t plan.Tensor) Tensor {
	placed := Tensor{t, o.Size}
	o.Size += t.SpoolBytes()
	o.narrows = o.narrows || t.ExactF32
	return placed
}

// addAliases adds each alias to the output that stores the tensor it must equal.
func addAliases(outputs []*Output, aliases []plan.Alias) {
	byTwin := map[string][]plan.Alias{}
	for _, a := range aliases {
		byTwin[a.Of.Name] = append(byTwin[a.Of.Name], a)
	}
	if len(byTwin) == 0 {
		return
	}
	for _, o := range outputs {
		var found []Alias
		for of, u := range o.Tensors() {
			for _, a := range byTwin[of.Name] {
				found = append(found, Alias{Tensor{Tensor: a.Tensor}, of, u})
			}
		}
		for _, a := range found {
			a.Tensor = o.place(a.Tensor.Tensor)
			o.Aliases = append(o.Aliases, a)
		}
	}
}

// Tensors lists the unit's weights in encoding order.
func (u *Unit) Tensors() iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		at := u.At
		for _, a := range u.Attrs {
			if !yield(Tensor{a, at}) {
				return
			}
			at += a.SpoolBytes()
		}
	}
}

// Tensors lists every source tensor of the output in spool order, with its unit. For a copied
// tensor or an alias, the unit is nil.
func (o *Output) Tensors() iter.Seq2[Tensor, *Unit] {
	return func(yield func(Tensor, *Unit) bool) {
		for _, u := range o.Units {
			for t := range u.Tensors() {
				if !yield(t, u) {
					return
				}
			}
		}
		for _, t := range o.Copied {
			if !yield(t, nil) {
				return
			}
		}
		for _, a := range o.Aliases {
			if !yield(a.Tensor, nil) {
				return
			}
		}
	}
}

// Files lists the source files that hold tensors of the output, by index.
func (o *Output) Files() []int {
	var files []int
	for t := range o.Tensors() {
		files = append(files, t.File)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// Spooled reports whether the output's source bytes wait in a spool. For a local source, they wait
// in their file, unless F32 tensors are taken as BF16.
func (o *Output) Spooled(local bool) bool {
	return !local || o.narrows
}

// MaxBytes returns a bound on the size of the output file: DF11 with the worst exponents, or BF16,
// plus the header.
func (o *Output) MaxBytes() int64 { return o.Size + o.Size/8 + 1<<20 }

// LikelyBytes estimates the size of the output file before any weight is read. A module shrinks to
// 68%, the middle of the published models, and needs 2 kB for tables and header. Everything else
// stays, but aliases aren't stored.
func (o *Output) LikelyBytes() int64 {
	size := ProvedBytes([]*Output{o})
	for _, u := range o.Units {
		if u.Unholdable == "" {
			size += 2000 - u.NBytes()*32/100
		}
	}
	return size
}

// LikelyBytes estimates the size of the files of these outputs.
func LikelyBytes(outputs []*Output) (n int64) {
	for _, o := range outputs {
		n += o.LikelyBytes()
	}
	return n
}

// ProvedBytes returns how many source bytes of outputs are encoded or copied: all except aliases,
// which are only compared.
func ProvedBytes(outputs []*Output) (n int64) {
	for _, o := range outputs {
		n += o.Size
		for _, a := range o.Aliases {
			n -= a.Length
		}
	}
	return n
}
