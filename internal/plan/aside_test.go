package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// TestOneMatrixOfAnotherType checks that a head or an embedding in F32, or a head that isn't there,
// doesn't keep the rest of a BF16 model from being compressed. The plan names the difference, and
// doesn't call such a model tried.
func TestOneMatrixOfAnotherType(t *testing.T) {
	for name, c := range map[string]struct {
		tensor string
		dtype  safetensors.DType // "": the tensor isn't there
		says   string
	}{
		"head":      {"lm_head.weight", safetensors.F32, "lm_head.weight is F32 and stays so"},
		"F16 head":  {"lm_head.weight", "F16", "lm_head.weight is F16 and stays so"},
		"embedding": {"model.embed_tokens.weight", safetensors.F32, "model.embed_tokens.weight is F32 and stays so"},
		"no head":   {"lm_head.weight", "", "the source has no lm_head.weight"},
	} {
		src := synth(t, catalog.Find("llama-untied-escaped"), false)
		w := &src.Weights[0]
		m := newModel()
		for _, tensor := range w.Header.Tensors {
			dtype := tensor.DType
			if tensor.Name == c.tensor {
				dtype = c.dtype
			}
			if dtype != "" {
				m.add(tensor.Name, dtype, tensor.Shape...)
			}
		}
		file := m.file(w.Path)
		src.Files[slices.IndexFunc(src.Files, func(f File) bool { return f.Path == w.Path })] = file.File
		src.Weights = []WeightFile{file}
		p := mustPlan(t, src, Options{})
		module := strings.TrimSuffix(c.tensor, ".weight")
		if slices.ContainsFunc(p.Units, func(u Unit) bool { return u.Path == module }) || len(p.Units) < 3 {
			t.Errorf("%s: %d units", name, len(p.Units))
		}
		stored := slices.ContainsFunc(p.Remainder, func(r Tensor) bool { return r.Name == c.tensor })
		if stored != (c.dtype != "") {
			t.Errorf("%s: %s is stored: %v", name, c.tensor, stored)
		}
		if said := slices.Concat(p.Differences, p.Warnings); !strings.Contains(strings.Join(said, "\n"), c.says) {
			t.Errorf("%s: the plan says %q", name, said)
		}
		if slices.ContainsFunc(p.Readers, func(r Reader) bool { return r.Loads == Loads }) {
			t.Errorf("%s: %+v", name, p.Readers)
		}
	}
}
