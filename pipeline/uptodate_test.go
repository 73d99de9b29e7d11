package pipeline_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestUpToDateReport checks that a call that finds its target up to date reports the same source,
// target, and sizes as the one that made it.
func TestUpToDateReport(t *testing.T) {
	dict := filepath.Join(t.TempDir(), "dict.json")
	world.Write(t, dict, `{"model\\.layers\\.\\d+\\.self_attn": ["q_proj", "k_proj", "v_proj", "o_proj"], "model\\.layers\\.\\d+\\.mlp\\.(gate_proj|up_proj|down_proj)": []}`)
	model := hubtest.NewQwen3(1, hubtest.ModelOptions{ShardBytes: 200_000}).Files()
	whole := hubtest.NewQwen3(1, hubtest.ModelOptions{}).Files()["model.safetensors"]
	checkpoint := func(dtype string, file []byte) map[string][]byte { // parts of it are left out, and the rest is renamed
		all := world.NewCheckpoint(1)
		all.Add("vae.weight", dtype, 0, 300)
		for _, x := range tensorsOf(t, file) {
			x.Name = "model.diffusion_model." + x.Name
			all.Tensors = append(all.Tensors, x)
		}
		return map[string][]byte{"all-in-one.safetensors": all.File()}
	}
	for name, tt := range map[string]struct {
		files map[string][]byte
		opt   pipeline.Options
		f32   bool
	}{
		"BF16":         {files: model},
		"F32":          {files: widened(t, model), opt: pipeline.Options{Recipe: pipeline.Recipe{ExactF32: true}}, f32: true},
		"a branch":     {files: model, opt: pipeline.Options{Branch: "dev"}},
		"a checkpoint": {files: checkpoint("BF16", whole), opt: pipeline.Options{Recipe: pipeline.Recipe{Layout: "single", PatternDict: dict}}},
		"a checkpoint F32": {files: checkpoint("F32", widened(t, map[string][]byte{"a.safetensors": whole})["a.safetensors"]),
			opt: pipeline.Options{Recipe: pipeline.Recipe{Layout: "single", PatternDict: dict, ExactF32: true}}, f32: true},
	} {
		server := hubtest.Start(t)
		server.AddRepo("org/a", tt.files)
		tt.opt.Push = true
		tt.opt.Hubs = &pipeline.Hubs{Options: &hub.Options{Connection: hub.Connection{Endpoint: server.URL, Token: "hf_demo", TokenSource: "this test"}}}
		made, err := pipeline.Convert(t.Context(), "org/a", tt.opt)
		world.Must(t, err)
		found, err := pipeline.Convert(t.Context(), "org/a", tt.opt)
		world.Must(t, err)
		if made.Verified.UpToDate || !found.Verified.UpToDate {
			t.Errorf("%s: up to date: %t, then %t", name, made.Verified.UpToDate, found.Verified.UpToDate)
		}
		if (made.Sizes.F32 > 0) != tt.f32 || made.Target.Branch != tt.opt.Branch {
			t.Errorf("%s: %+v, %+v", name, made.Sizes, made.Target)
		}
		for _, r := range []*pipeline.Report{made, found} {
			r.Verified, r.Made.Now, r.Made.Seconds, r.Made.Stages, r.Made.Warnings = pipeline.Verified{}, 0, 0, nil, nil
			r.Note, r.Unloadable = "", false // what only a plan says
			slices.SortFunc(r.Made.UnitsBF16, func(a, b pipeline.Unit) int { return strings.Compare(a.Path, b.Path) })
		}
		if made.Made.UnitsBF16, found.Made.UnitsBF16 = nil, nil; !reflect.DeepEqual(made, found) {
			t.Errorf("%s:\nmade  %+v\nfound %+v", name, made, found)
		}
	}
}

// tensorsOf returns the tensors of a safetensors file.
func tensorsOf(t *testing.T, file []byte) (list []world.Tensor) {
	t.Helper()
	h, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
	world.Must(t, err)
	for _, x := range h.Tensors {
		list = append(list, world.Tensor{Name: x.Name, DType: string(x.DType), Shape: x.Shape, Data: file[h.DataStart()+x.Begin : h.DataStart()+x.End]})
	}
	return list
}

// widened returns files with F32 instead of BF16.
func widened(t *testing.T, files map[string][]byte) map[string][]byte {
	t.Helper()
	wide := map[string][]byte{}
	for name, b := range files {
		if wide[name] = b; !strings.HasSuffix(name, ".safetensors") {
			continue
		}
		list := tensorsOf(t, b)
		for i, x := range list {
			var data []byte
			for at := 0; at < len(x.Data); at += 2 {
				data = append(data, 0, 0, x.Data[at], x.Data[at+1])
			}
			list[i].DType, list[i].Data = "F32", data
		}
		wide[name] = world.Safetensors(list)
	}
	return wide
}
