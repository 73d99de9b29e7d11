package spans_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// t5Plan plans an encoder of T5 that stores its embedding twice. With compressed, the first copy is
// a module of its own. dtype is BF16, or F32 that is exact BF16.
func t5Plan(t *testing.T, compressed bool, dtype string) *plan.Plan {
	t.Helper()
	c := world.NewCheckpoint(1)
	c.Add("encoder.final_layer_norm.weight", dtype, 0, 32)
	c.Add("shared.weight", dtype, 0, 64, 32)
	c.Again("encoder.embed_tokens.weight")
	for _, m := range []string{"q", "k", "v", "o"} {
		c.Add("encoder.block.0.layer.0.SelfAttention."+m+".weight", dtype, 0, 32, 32)
	}
	c.Add("encoder.block.0.layer.0.layer_norm.weight", "F16", 0, 32)
	c.Add("empty", "BF16", 0, 0)
	file := plan.File{Path: "model.safetensors", Size: int64(len(c.File()))}
	h, err := safetensors.ReadHeader(bytes.NewReader(c.File()), file.Size)
	world.Must(t, err)
	dict := catalog.PatternDict{{Regex: `encoder\.block\.\d+`, Attrs: []string{"layer.0.SelfAttention.q", "layer.0.SelfAttention.k",
		"layer.0.SelfAttention.v", "layer.0.SelfAttention.o"}}}
	if compressed {
		dict = append(dict, catalog.Pattern{Regex: "shared", Attrs: []string{}})
	}
	p, err := plan.New(t.Context(), plan.Source{
		Files:   []plan.File{file, {Path: "config.json"}},
		Weights: []plan.WeightFile{{File: file, Header: h}},
		Config:  []byte(`{"model_type": "t5", "architectures": ["T5EncoderModel"]}`),
	}, plan.Options{PatternDict: dict, Like: "t5-encoder", ExactF32: dtype == "F32"})
	world.Must(t, err)
	return p
}

// An alias waits in the spool of the tensor that it must equal, wherever that tensor is, and in the
// same form.
func TestAliasesFollowTheirTwins(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		for _, dtype := range []string{"BF16", "F32"} {
			found := 0
			for _, o := range world.Got(spans.Outputs(t5Plan(t, compressed, dtype)))(t) {
				for _, a := range o.Aliases {
					found++
					if a.Of.Name != "shared.weight" || (a.Unit != nil) != compressed || a.SpoolBytes() != a.Of.SpoolBytes() ||
						a.At+a.SpoolBytes() > o.Size || a.At < a.Of.At+a.Of.SpoolBytes() {
						t.Errorf("compressed %v, %s: %+v", compressed, dtype, a)
					}
				}
			}
			if found != 1 {
				t.Errorf("compressed %v, %s: %d aliases", compressed, dtype, found)
			}
		}
	}
}

// A plan that loses a tensor, has it twice, or has another part of the file has no outputs.
func TestEveryByteIsAccountedFor(t *testing.T) {
	rest := func(p *plan.Plan) *[]plan.Tensor { return &p.OutputFiles[len(p.OutputFiles)-1].Plain }
	for name, tt := range map[string]struct {
		edit func(p *plan.Plan)
		lost string
	}{
		"no aliases":       {func(p *plan.Plan) { p.Aliases = nil }, "encoder.embed_tokens.weight"},
		"no twin":          {func(p *plan.Plan) { p.Aliases[0].Of.Name = "x" }, "encoder.embed_tokens.weight"},
		"a weight less":    {func(p *plan.Plan) { p.Units[0].Attrs = p.Units[0].Attrs[1:] }, "encoder.block.0.layer.0.SelfAttention.q.weight"},
		"no siblings":      {func(p *plan.Plan) { p.Units[0].Siblings = nil }, "encoder.block.0.layer.0.layer_norm.weight"},
		"no module":        {func(p *plan.Plan) { p.OutputFiles = p.OutputFiles[1:] }, "encoder.block.0.layer.0.SelfAttention.q.weight"},
		"no remainder":     {func(p *plan.Plan) { *rest(p) = nil }, "encoder.final_layer_norm.weight"},
		"twice":            {func(p *plan.Plan) { *rest(p) = append(*rest(p), (*rest(p))[0]) }, "shared.weight"},
		"the last twice":   {func(p *plan.Plan) { p.Dropped = []plan.Tensor{(*rest(p))[1]} }, "empty"},
		"half of a tensor": {func(p *plan.Plan) { p.Units[0].Attrs[3].Length /= 2 }, "encoder.block.0.layer.0.SelfAttention.o.weight"},
		"of another name": {func(p *plan.Plan) {
			p.Units[0].Attrs[0].Source, p.Units[0].Attrs[1].Source = p.Units[0].Attrs[1].Source, p.Units[0].Attrs[0].Source
		}, "encoder.block.0.layer.0.SelfAttention.q.weight"},
		"empty ones": {func(p *plan.Plan) {
			*rest(p) = slices.DeleteFunc(*rest(p), func(t plan.Tensor) bool { return t.Length == 0 })
		}, "empty"},
	} {
		p := t5Plan(t, true, "BF16")
		tt.edit(p)
		outputs, err := spans.Outputs(p)
		lost := (*spans.UnaccountedError)(nil)
		if !errors.As(err, &lost) || lost.Tensor != tt.lost || outputs != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := t5Plan(t, true, "BF16")
	p.Dropped, *rest(p) = *rest(p), nil // left out for a reason that the plan states
	world.Got(spans.Outputs(p))(t)
}
