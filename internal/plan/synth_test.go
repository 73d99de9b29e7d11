package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/python"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// model builds the headers of an imaginary checkpoint.
type model struct {
	names  []string
	types  map[string]safetensors.DType
	dims   map[string][]int64
	layers int // as the config has it
}

func newModel() *model {
	return &model{types: map[string]safetensors.DType{}, dims: map[string][]int64{}, layers: 3}
}

// add puts a tensor into the model; a name that is there already stays as it is.
func (m *model) add(name string, d safetensors.DType, shape ...int64) {
	if _, ok := m.types[name]; ok {
		return
	}
	m.names = append(m.names, name)
	m.types[name], m.dims[name] = d, shape
}

// weight adds a small 2-D BF16 weight; its shape depends on the name, so that mixed-up tensors
// show.
func (m *model) weight(module string) {
	m.add(module+".weight", safetensors.BF16, int64(8+2*(len(module)%5)), 16)
}

// file returns the model's header as one weight file.
func (m *model) file(path string) WeightFile { return headerFile(path, m.tensors(m.names)) }

// typeBytes are the bytes of one element.
var typeBytes = map[safetensors.DType]int64{"I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "U8": 1, "F8_E4M3": 1, "BOOL": 1, "I8": 1, "F4": 1, "F6_E2M3": 1}

// tensors lists tensors with consecutive offsets.
func (m *model) tensors(names []string) []safetensors.Tensor {
	var out []safetensors.Tensor
	var end int64
	for _, n := range names {
		t := safetensors.Tensor{Name: n, DType: m.types[n], Shape: m.dims[n], Begin: end}
		t.End = end + t.NElems()*typeBytes[t.DType]
		end = t.End
		out = append(out, t)
	}
	return out
}

// headerFile wraps tensors as a weight file of the right size.
func headerFile(path string, ts []safetensors.Tensor) WeightFile {
	h := &safetensors.Header{Tensors: ts, Raw: []byte(`{"x":"stands for the header"}   `)}
	size := h.DataStart()
	if len(ts) > 0 {
		size += ts[len(ts)-1].End
	}
	return WeightFile{File: File{Path: path, Size: size, ETag: "etag-of-" + path}, Header: h}
}

// source makes a Source of weight files, a config and names of further files.
func source(weights []WeightFile, config map[string]any, more ...string) Source {
	src := Source{ID: "test/model", Commit: "0123456789abcdef", Weights: weights}
	for _, w := range weights {
		src.Files = append(src.Files, w.File)
	}
	if config != nil {
		src.Config, _ = json.Marshal(config)
		src.Files = append(src.Files, File{Path: "config.json", Size: int64(len(src.Config))})
	}
	for _, path := range more {
		src.Files = append(src.Files, File{Path: path, Size: 1})
	}
	return src
}

// mustPlan plans a source that converts.
func mustPlan(t *testing.T, src Source, opt Options) *Plan {
	t.Helper()
	p, err := New(t.Context(), src, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// synth makes the source that a catalog entry is for: real names in small shapes, three blocks a
// stack, optional attributes in some blocks only, four experts, norms and biases next to the
// weights.
func synth(t *testing.T, e *catalog.Entry, tied bool) Source {
	t.Helper()
	m := newModel()
	for _, name := range slices.Sorted(maps.Keys(e.Match.Shapes)) {
		dims := slices.Clone(e.Match.Shapes[name])
		for i, n := range dims {
			if n <= 0 {
				dims[i] = 16 - n // any, or any but -n
			}
		}
		m.add(name, safetensors.BF16, dims...)
	}
	for _, name := range sharedNames(e) {
		m.add(name, safetensors.BF16, 64, 16)
	}
	for _, pat := range e.PatternDict {
		for i, module := range expandRegex(t, pat.Regex) {
			m.addUnit(e, module, i, pat.Attrs)
		}
	}
	for _, name := range e.Match.Markers {
		m.weight(strings.TrimSuffix(name, ".weight"))
	}
	m.addKept(e.KeepBF16)
	m.add("final.norm.weight", safetensors.BF16, 16)
	m.add("rotary.inv_freq", safetensors.F32, 8)
	m.hubNames(e.Renames())
	return synthSource(e, m, tied)
}

// A catalogPlan is the plan that New makes of an entry's own source.
type catalogPlan struct {
	src  Source
	plan *Plan
	err  error
}

// catalogPlans has the plans that planEntry made, by entry and by whether embeddings are tied.
var catalogPlans sync.Map

// planEntry plans the source of an entry, once for all tests, which must not change it.
func planEntry(t *testing.T, e *catalog.Entry, tied bool) catalogPlan {
	t.Helper()
	key := fmt.Sprint(e.ID, tied)
	made, ok := catalogPlans.Load(key)
	if !ok {
		src := synth(t, e, tied)
		p, err := New(t.Context(), src, ownOptions(e))
		made, _ = catalogPlans.LoadOrStore(key, catalogPlan{src, p, err})
	}
	return made.(catalogPlan)
}

// ownOptions are the options with which New chooses the entry for its source.
func ownOptions(e *catalog.Entry) Options {
	if e.LikeOnly {
		return Options{Like: e.ID}
	}
	return Options{}
}

// mustBeTied says whether the entry is for tied embeddings alone.
func mustBeTied(e *catalog.Entry) bool { return e.Match.Tied != nil && *e.Match.Tied }

// sharedNames lists head, embedding and whatever else the class may share.
func sharedNames(e *catalog.Entry) []string {
	var names []string
	if e.Tied == nil {
		return nil
	}
	if e.Tied.Head != "" {
		names = append(names, e.Tied.Embedding+".weight", e.Tied.Head+".weight")
	}
	for _, pair := range e.Tied.Always {
		names = append(names, pair[1], pair[0])
	}
	return names
}

// addUnit adds one module of a pattern: the weights of its attributes, a norm and a bias.
func (m *model) addUnit(e *catalog.Entry, module string, index int, attrs []string) {
	if len(attrs) == 0 {
		m.weight(module)
		return
	}
	for _, a := range attrs {
		if slices.Contains(e.OptionalAttrs, a) && !optionalIn(e, a, index) {
			continue
		}
		if !strings.Contains(a, "{e}") {
			m.weight(module + "." + a)
			continue
		}
		for x := range 4 {
			m.weight(module + "." + strings.ReplaceAll(a, "{e}", strconv.Itoa(x)))
		}
	}
	m.add(module+".norm.weight", safetensors.BF16, 16)
	m.add(module+".norm.bias", safetensors.BF16, 16)
}

// optionalIn spreads optional attributes over blocks: those of one sub-module come together, in
// every second block.
func optionalIn(e *catalog.Entry, attr string, index int) bool {
	var groups []string
	for _, a := range e.OptionalAttrs {
		if !slices.Contains(groups, catalog.Parent(a)) {
			groups = append(groups, catalog.Parent(a))
		}
	}
	return (slices.Index(groups, catalog.Parent(attr))+index)%2 == 0
}

// addKept adds a 2-D weight for each thing that the catalog keeps in BF16.
func (m *model) addKept(globs []string) {
	blocks := map[string]bool{}
	for _, n := range m.names {
		if b, ok := strings.CutSuffix(n, ".norm.bias"); ok {
			blocks[b] = true
		}
	}
	for _, g := range globs {
		rest, inBlock := strings.CutPrefix(g, "*.")
		if !inBlock {
			m.weight(strings.ReplaceAll(g, "*", "kept"))
			continue
		}
		for _, b := range slices.SortedFunc(maps.Keys(blocks), human.CompareNames) {
			m.weight(b + "." + strings.ReplaceAll(rest, "*", "kept"))
		}
	}
}

// hubNames renames module paths back to the names that the Hub's checkpoints have.
func (m *model) hubNames(rules [][2]string) {
	for i, n := range m.names {
		hub := hubtest.CheckpointName(rules, n)
		m.types[hub], m.dims[hub], m.names[i] = m.types[n], m.dims[n], hub
	}
}

// synthSource adds the files and the config by which the model's entry is found.
func synthSource(e *catalog.Entry, m *model, tied bool) Source {
	config := map[string]any{"num_hidden_layers": m.layers, "tie_word_embeddings": tied, "torch_dtype": "bfloat16"}
	if len(e.Match.ModelType) > 0 {
		config["model_type"] = e.Match.ModelType[0]
	}
	if len(e.Match.Architectures) > 0 {
		config["architectures"] = e.Match.Architectures[:1]
	}
	switch e.Layout.Family() {
	case catalog.ComfyUI:
		for i, n := range m.names {
			hub := "model.diffusion_model." + n
			m.types[hub], m.dims[hub], m.names[i] = m.types[n], m.dims[n], hub
		}
		return source([]WeightFile{m.file("diffusion_models/" + e.ID + ".safetensors")}, nil, "LICENSE.md", "README.md")
	case catalog.Diffusers:
		return synthPipeline(e, m)
	default:
		return source([]WeightFile{m.file("model.safetensors")}, config, "tokenizer.json", "LICENSE", "README.md",
			"pytorch_model.bin", "original/consolidated.00.pth", ".gitattributes")
	}
}

// synthPipeline makes a diffusers pipeline around the model.
func synthPipeline(e *catalog.Entry, m *model) Source {
	src := source([]WeightFile{m.file("transformer/diffusion_pytorch_model.safetensors")}, nil,
		"model_index.json", "transformer/config.json", "vae/config.json", "vae/diffusion_pytorch_model.safetensors",
		"vae/diffusion_pytorch_model.fp16.safetensors", "scheduler/scheduler_config.json", "whole.safetensors")
	class, _ := json.Marshal(e.Match.ClassName[0])
	src.Config = fmt.Appendf(nil, `{"_class_name": %s, "_diffusers_version": "0.35.0"}`, class)
	src.ModelIndex = []byte(`{"_class_name": "Pipeline", "transformer": ["diffusers", "X"], "vae": ["diffusers", "Y"]}`)
	return src
}

// expandRegex lists module paths that a catalog regex matches; \d+ stands for 0, 1 and 2.
func expandRegex(t *testing.T, regex string) []string {
	t.Helper()
	expr, err := python.Translate(regex)
	if err != nil {
		t.Fatal(err)
	}
	out := hubtest.Expand(expr, "0", "1", "2")
	slices.SortFunc(out, human.CompareNames)
	return out
}
