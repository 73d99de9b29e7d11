package spans_test

import (
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// twoFiles is a plan with a unit of two F32 weights, a sibling, a remainder, and an alias of a
// tensor in the remainder.
func twoFiles() *plan.Plan {
	weight := func(name string, file int, offset int64) plan.Tensor {
		return plan.Tensor{Name: name, Source: name, DType: "F32", Shape: []int64{2, 4}, File: file, Offset: offset, Length: 32, ExactF32: true}
	}
	plain := func(name string, file int, offset, length int64) plan.Tensor {
		return plan.Tensor{Name: name, Source: name, DType: "BF16", Shape: []int64{length / 2}, File: file, Offset: offset, Length: length}
	}
	embed := plain("embed", 0, 100, 20)
	return &plan.Plan{
		Units: []plan.Unit{{
			Path: "layer", Attrs: []plan.Tensor{weight("q", 1, 0), weight("k", 0, 0)}, Siblings: []plan.Tensor{plain("norm", 1, 32, 6)},
		}},
		OutputFiles: []plan.OutputFile{{Path: "layer", Units: []int{0}}, {Path: "rest", Plain: []plan.Tensor{embed}}},
		Changes:     plan.Changes{Aliases: []plan.Alias{{Tensor: plain("head", 1, 38, 20), Of: embed}}},
	}
}

// A spool holds the weights of units first, in encoding order and as BF16, then the copied tensors,
// then the aliases. An alias is in the same output as the tensor it equals.
func TestOutputs(t *testing.T) {
	outputs := world.Got(spans.Outputs(twoFiles()))(t)
	type place struct {
		name string
		at   int64
		unit bool
	}
	for i, want := range [][]place{{{"q", 0, true}, {"k", 16, true}, {"norm", 32, false}}, {{"embed", 0, false}, {"head", 20, false}}} {
		var got []place
		for x, u := range outputs[i].Tensors() {
			got = append(got, place{x.Name, x.At, u != nil})
		}
		if o := outputs[i]; !slices.Equal(got, want) || o.Index != i || o.Size != []int64{38, 40}[i] || !slices.Equal(o.Files(), []int{0, 1}) {
			t.Errorf("%s: %+v, %d bytes of files %v", o.Path, got, o.Size, o.Files())
		}
	}
	if n := spans.ProvedBytes(outputs); n != 38+20 {
		t.Errorf("%d bytes are encoded or copied", n)
	}
	for i, o := range outputs {
		if !o.Spooled(false) || o.Spooled(true) != (i == 0) {
			t.Errorf("%s waits in a spool: %v of a Hub, %v of a folder", o.Path, o.Spooled(false), o.Spooled(true))
		}
		if o.MaxBytes() < o.Size || o.LikelyBytes() > o.MaxBytes() {
			t.Errorf("%s: %d bytes are likely, %d the most, of %d", o.Path, o.LikelyBytes(), o.MaxBytes(), o.Size)
		}
	}
}

// Each file lists its tensors by offset, with the output that each belongs to.
func TestSegments(t *testing.T) {
	outputs := world.Got(spans.Outputs(twoFiles()))(t)
	var got []string
	for _, file := range spans.Segments(outputs, 2) {
		for _, s := range file {
			if d := s.To[0]; len(s.To) != 1 || s.End-s.Off != d.Length || (d.Unit != nil) != d.ExactF32 {
				t.Errorf("%+v", s)
			}
			got = append(got, s.To[0].Output.Path+" "+s.To[0].Name)
		}
	}
	if want := []string{"layer k", "rest embed", "layer q", "layer norm", "rest head"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Narrow keeps the upper halves of F32 values and counts the values whose lower half isn't zero.
func TestNarrow(t *testing.T) {
	got, inexact := spans.Narrow(nil, []byte{0, 0, 0x80, 0x3f, 1, 0, 2, 3, 0, 9, 4, 5})
	if !slices.Equal(got, []byte{0x80, 0x3f, 2, 3, 4, 5}) || inexact != 2 {
		t.Errorf("%x, %d values are inexact", got, inexact)
	}
	if n := spans.NExactF32(twoFiles()); n != 16 {
		t.Errorf("%d weights are taken from F32", n)
	}
}

// Every output with a unit has one maker, the largest output goes first, and a part out of range is
// refused.
func TestParts(t *testing.T) {
	var outputs []*spans.Output
	for _, size := range []int64{1, 9, 4, 4} {
		outputs = append(outputs, &spans.Output{Units: []*spans.Unit{{}}, Size: size})
	}
	one, two := (spans.Part{I: 1, N: 2}).Of(outputs), (spans.Part{I: 2, N: 2}).Of(outputs)
	if !slices.Equal(one, outputs[1:2]) || !slices.Equal(two, []*spans.Output{outputs[0], outputs[2], outputs[3]}) {
		t.Errorf("%v and %v", one, two)
	}
	if whole := (spans.Part{}).Of(outputs); len(whole) != 4 {
		t.Errorf("the whole has %d outputs", len(whole))
	}
	for part, ok := range map[spans.Part]bool{{}: true, {I: 2, N: 2}: true, {I: 3, N: 2}: false, {I: 0, N: 2}: false, {I: 1, N: spans.MaxParts + 1}: false} {
		if err := part.Check(); (err == nil) != ok {
			t.Errorf("%v: %v", part, err)
		}
	}
}
