package pipeline

import (
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// TestLintOfOutputs: no output is sealed, and no config.json published, in which a loader would fall into a trap.
func TestLintOfOutputs(t *testing.T) {
	norm := plan.Tensor{Name: "layers.0.norm.weight", DType: "BF16", Shape: []int64{8}}
	weight := plan.Tensor{Name: "layers.0.q.weight", DType: "F32", Shape: []int64{4, 8}, ExactF32: true}
	u := plan.Unit{Path: "layers.0", Attrs: []plan.Tensor{weight}, Siblings: []plan.Tensor{norm}}
	x := &task{path: "layers_0.safetensors", units: []*taskUnit{{Unit: u, sizes: []int64{32}}}, plain: []placed{{Tensor: norm}}}
	header := func(es ...safetensors.Entry) *safetensors.Header {
		l, err := safetensors.NewLayout(nil, es)
		if err != nil {
			t.Fatal(err)
		}
		return &safetensors.Header{Tensors: l.Tensors}
	}
	stored := []safetensors.Entry{
		{Name: "layers.0.luts", DType: "U8", Shape: []int64{3, 256}},
		{Name: "layers.0.encoded_exponent", DType: "U8", Shape: []int64{12}},
		{Name: "layers.0.sign_mantissa", DType: "U8", Shape: []int64{32}},
		{Name: "layers.0.output_positions", DType: "U8", Shape: []int64{8}},
		{Name: "layers.0.gaps", DType: "U8", Shape: []int64{320}},
		{Name: "layers.0.split_positions", DType: "I64", Shape: []int64{0}},
		{Name: norm.Name, DType: "BF16", Shape: []int64{8}},
	}
	plain := []safetensors.Entry{{Name: weight.Name, DType: "BF16", Shape: weight.Shape}, stored[6]}
	for _, good := range [][]safetensors.Entry{stored, plain} {
		if err := lintFile(x, header(good...)); err != nil {
			t.Error(err)
		}
	}
	for i := range stored {
		bad := append(stored[:i:i], stored[i+1:]...)
		if err := lintFile(x, header(bad...)); err == nil {
			t.Errorf("nothing is wrong without %s", stored[i].Name)
		}
	}
	p := &plan.Plan{PatternDict: plan.PatternDict{{Regex: `layers\.\d+`, Attrs: []string{"q", "k"}}}}
	config, err := metadata.InsertConfig([]byte(`{"a": 1}`), p.PatternDict)
	if err != nil {
		t.Fatal(err)
	}
	if err := lintConfig(config, p); err != nil {
		t.Error(err)
	}
	p.PatternDict[0].Attrs = []string{"k", "q"}
	if err := lintConfig(config, p); err == nil || !strings.Contains(err.Error(), "attribute_order") {
		t.Errorf("attributes in another order than they were encoded in: %v", err)
	}
}
