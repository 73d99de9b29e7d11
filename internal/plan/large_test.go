package plan

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// shard deals a model's tensors out to n files, in order, and returns them with their index.
func (m *model) shard(n int) (files []WeightFile, index []byte) {
	var b strings.Builder
	b.WriteString(`{"metadata": {}, "weight_map": {`)
	for i := range n {
		names := m.names[i*len(m.names)/n : (i+1)*len(m.names)/n]
		path := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n)
		files = append(files, headerFile(path, m.tensors(names)))
		for _, name := range names {
			fmt.Fprintf(&b, "%q: %q,", name, path)
		}
	}
	return files, []byte(strings.TrimSuffix(b.String(), ",") + "}}")
}

// bigLlama is Llama-3.1-405B by its config: every name, every shape.
func bigLlama() *model {
	const hidden, ffn, vocab, kv = 16384, 53248, 128256, 1024
	m := newModel()
	m.add("model.embed_tokens.weight", safetensors.BF16, vocab, hidden)
	for i := range 126 {
		l := fmt.Sprintf("model.layers.%d.", i)
		m.add(l+"input_layernorm.weight", safetensors.BF16, hidden)
		m.add(l+"mlp.down_proj.weight", safetensors.BF16, hidden, ffn)
		m.add(l+"mlp.gate_proj.weight", safetensors.BF16, ffn, hidden)
		m.add(l+"mlp.up_proj.weight", safetensors.BF16, ffn, hidden)
		m.add(l+"post_attention_layernorm.weight", safetensors.BF16, hidden)
		m.add(l+"self_attn.k_proj.weight", safetensors.BF16, kv, hidden)
		m.add(l+"self_attn.o_proj.weight", safetensors.BF16, hidden, hidden)
		m.add(l+"self_attn.q_proj.weight", safetensors.BF16, hidden, hidden)
		m.add(l+"self_attn.v_proj.weight", safetensors.BF16, kv, hidden)
	}
	m.add("model.norm.weight", safetensors.BF16, hidden)
	m.add("lm_head.weight", safetensors.BF16, vocab, hidden)
	return m
}

// TestLlama405B plans the largest dense model: its layers exceed the format's limit, so they are
// split.
func TestLlama405B(t *testing.T) {
	t.Parallel()
	files, index := bigLlama().shard(191)
	src := source(files, map[string]any{
		"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "num_hidden_layers": 126,
	}, "model.safetensors.index.json")
	src.Index = index
	p := mustPlan(t, src, Options{})
	checkWhole(t, p)
	const weights = 126*3_187_671_040 + 2*2_101_346_304
	if len(p.Units) != 506 || !p.Split || p.UnitBytes() != 2*weights {
		t.Errorf("%d units of %d bytes, split %v", len(p.Units), p.UnitBytes(), p.Split)
	}
	// Norms lie next to the units, in the remainder, since no unit holds them.
	const norms = (2*126 + 1) * 16384 * 2
	if p.PlainBytes() != norms || len(p.RemainderFiles) != 1 {
		t.Errorf("%d plain bytes in %d files, want %d in 1", p.PlainBytes(), len(p.RemainderFiles), norms)
	}
	var headers int64
	for _, f := range files {
		headers += f.Header.DataStart()
	}
	if got := p.SourceBytes(); got != 2*weights+norms+headers {
		t.Errorf("%d bytes in, want %d", got, 2*weights+norms+headers)
	}
	for _, u := range p.Units {
		if u.NElems() > maxElems || u.Unholdable != "" {
			t.Errorf("unit %s has %d weights", u.Path, u.NElems())
		}
	}
}

// largeModel is a real model by its names and shapes.
type largeModel struct {
	name, config string
	m            *model
}

func (l *largeModel) plan(t *testing.T) *Plan {
	t.Helper()
	src := source([]WeightFile{l.m.file("model.safetensors")}, map[string]any{})
	src.Config = []byte(l.config)
	p := mustPlan(t, src, Options{})
	checkWhole(t, p)
	return p
}

// readLarge reads testdata/large.txt.
func readLarge(t *testing.T) (list []largeModel) {
	t.Helper()
	for line := range strings.Lines(string(world.Read(t, filepath.Join("testdata", "large.txt")))) {
		if head, ok := strings.CutPrefix(line, "= "); ok {
			name, config, _ := strings.Cut(head, " ")
			list = append(list, largeModel{name, config, newModel()})
			continue
		}
		f := strings.Fields(line)
		for _, tensor := range unbrace(t, f[0]) {
			list[len(list)-1].m.add(tensor, safetensors.BF16, parseShape(t, f[1])...)
		}
	}
	return list
}

// TestLargeModels plans the models of testdata/large.txt, where most have layers that exceed the
// format's limit, and compares what is compressed with a golden file.
func TestLargeModels(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for _, l := range readLarge(t) {
		p := l.plan(t)
		fmt.Fprintf(&b, "== %s: entry %q, split %v\n%d units with %.1f%% of %d bytes\n", l.name, p.Entry, p.Split, len(p.Units),
			100*float64(p.UnitBytes())/float64(p.UnitBytes()+p.PlainBytes()), p.UnitBytes()+p.PlainBytes())
		for _, pat := range p.PatternDict {
			fmt.Fprintf(&b, "%s: %.100s\n", pat.Regex, strings.Join(pat.Attrs, " "))
		}
		for _, u := range p.Units {
			if u.Unholdable != "" {
				t.Errorf("%s: %s is %s", l.name, u.Path, u.Unholdable)
			}
		}
	}
	compareGolden(t, filepath.Join("testdata", "large-plans.txt"), b.Bytes())
}

// TestNoSplitBelowLimit checks that GLM-4.5-Air with narrower weights keeps one unit per layer.
func TestNoSplitBelowLimit(t *testing.T) {
	t.Parallel()
	l := readLarge(t)[1]
	for n, d := range l.m.dims {
		l.m.dims[n] = append([]int64{max(d[0]/16, 1)}, d[1:]...)
	}
	p := l.plan(t)
	if p.Split || len(p.Units) != 48 || p.PatternDict[2].Regex != `model\.layers\.0` || p.PatternDict[3].Regex != `model\.layers\.([1-9]|[1-3][0-9]|4[0-5])` {
		t.Errorf("split %v, %d units, dict %v", p.Split, len(p.Units), p.PatternDict[2:])
	}
	if n := len(p.PatternDict[3].Attrs); n != 4+128*3+3 {
		t.Errorf("%d attributes in a layer with experts", n)
	}
}
