package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

// FuzzNew plans hostile headers, indexes and configs: it must end in a refusal or in a plan that
// holds every tensor of the source exactly once, and whose output falls into no trap.
func FuzzNew(f *testing.F) {
	index := []byte(`{"weight_map": {"model.layers.0.mlp.up_proj.weight": "model-00001-of-00001.safetensors"}}`)
	f.Add([]byte(`{"model.layers.0.a.weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}`), index, []byte(`{}`), true)
	f.Add([]byte(`{"lm_head.weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]},"model.layers.0.mlp.up_proj.weight":`+
		`{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]}}`), []byte(nil), []byte(`{"model_type": "llama", "tie_word_embeddings": true}`), false)
	f.Add([]byte(`{"x.1.y.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"x.2.y.weight":{"dtype":"BF16","shape":[0,2],`+
		`"data_offsets":[16,16]}}`), []byte(nil), []byte(`{"num_hidden_layers": -1, "limit": NaN}`), true)
	f.Add([]byte(`{"a.0.mlp.up_proj.weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]},"b.gaps":{"dtype":"U8","shape":[0],`+
		`"data_offsets":[8,8]}}`), []byte(nil), []byte(`{}`), false)
	f.Fuzz(func(t *testing.T, header, index, config []byte, derive bool) {
		src, ok := hostileSource(header, index, config)
		if !ok {
			return
		}
		opt := Options{ExactF32: derive}
		if !derive {
			opt.PatternDict = catalog.PatternDict{{Regex: `.+\.\d+`, Attrs: []string{"mlp.up_proj"}}, {Regex: `[^.]+`, Attrs: []string{}}}
		}
		var p *Plan
		var err error
		nBytes := len(header) + len(index) + len(config)
		// most of it for the catalog
		alloc.Within(t, 16<<20+2000*int64(nBytes), func() { p, err = New(t.Context(), src, opt) })
		if err != nil {
			var refused *RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		checkWhole(t, p)
		if len(p.Digest()) != 64 || len(p.Units) == 0 {
			t.Fatalf("%d units, digest %q", len(p.Units), p.Digest())
		}
	})
}

// hostileSource makes a source of fuzzed bytes, as far as the header parser lets it.
func hostileSource(header, index, config []byte) (Source, bool) {
	for size := int64(len(header)) + 8; size < int64(len(header))+64; size++ {
		h, err := new(safetensors.Headers).Parse(header, size)
		if err != nil {
			continue
		}
		path := "model.safetensors"
		if index != nil {
			path = "model-00001-of-00001.safetensors"
		}
		src := source([]WeightFile{{File: File{Path: path, Size: size}, Header: h}}, nil, "config.json")
		src.Config = config
		if index != nil {
			src.Index = index
			src.Files = append(src.Files, File{Path: "model.safetensors.index.json"})
		}
		return src, true
	}
	return Source{}, false
}

// FuzzSurvey plans from hostile lists of files and hostile small files. It must end in a refusal or
// in a plan that has every file once: converted, copied, or left out with a reason.
func FuzzSurvey(f *testing.F) {
	index := []byte(`{"weight_map": {"model.layers.0.w.weight": "model-00001-of-00002.safetensors", "model.layers.1.w.weight": "model-00002-of-00002.safetensors"}}`)
	f.Add("model-00001-of-00002.safetensors model-00002-of-00002.safetensors config.json model.safetensors.index.json", index, []byte(`{}`), []byte(nil), "", "")
	f.Add("model_index.json transformer/diffusion_pytorch_model.safetensors vae/diffusion_pytorch_model.bin transformer/config.json .git/x", []byte(nil),
		[]byte(`{"num_layers": 1}`), []byte(`{"transformer": ["a", "b"], "vae": ["a", "b"], "te": [null, null]}`), "", "transformer")
	f.Add("a.safetensors b/model.safetensors b/config.json LICENSE", []byte(nil), []byte(nil), []byte(nil), "b/model.safetensors", "")
	f.Fuzz(func(t *testing.T, names string, index, config, modelIndex []byte, file, component string) {
		src := Source{ID: "x", Index: index, Config: config, ModelIndex: modelIndex}
		for _, name := range strings.Fields(names) {
			src.Files = append(src.Files, File{Path: name, Size: 64})
		}
		opt := Options{WeightFile: file, Component: component, PatternDict: catalog.PatternDict{{Regex: `model\.layers\.\d+`, Attrs: []string{"w"}}}}
		p, err := planFiles(src, opt)
		if err != nil {
			if r := (*RefusedError)(nil); !errors.As(err, &r) {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		checkWhole(t, p)
		n := len(p.Copied) + len(p.Components) + len(p.NotCopied)
		if p.Config != "" {
			n++
		}
		if n += len(p.source.Weights); n != len(src.Files) {
			t.Fatalf("%d files became %d: %+v", len(src.Files), n, p)
		}
	})
}

// planFiles plans a source whose weight files hold a block each.
func planFiles(src Source, opt Options) (*Plan, error) {
	s, err := Look(src.Files, opt)
	if err != nil {
		return nil, err
	}
	set, err := s.FindWeights(src.Config)
	if err != nil {
		return nil, err
	}
	weights, err := set.Files(src.Index)
	if err != nil {
		return nil, err
	}
	for i, w := range weights {
		m := newModel()
		m.add(fmt.Sprintf("model.layers.%d.w.weight", i), safetensors.BF16, 2, 2)
		src.Weights = append(src.Weights, WeightFile{File: w, Header: m.file(w.Path).Header})
	}
	return New(context.Background(), src, opt)
}
