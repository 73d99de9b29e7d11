package reader

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestHousekeepingInAnySpelling leaves behind what some file system takes for a folder of Git's, of
// a download's, or of ours.
func TestHousekeepingInAnySpelling(t *testing.T) {
	for _, name := range []string{".gitmodules", names.StateDir + "/lock", names.JournalDir + "/part.json", "a/.DS_Store", ".cache/x.json", "._a"} {
		for _, spelled := range []string{name, strings.ToUpper(name), strings.ToLower(name), norm.NFD.String(name), name[:2] + "\u200d" + name[2:]} {
			if f, why := (&Original{}).Fate(spelled); f == Copied || f == Part {
				t.Errorf("%+q: %v, %s", spelled, f, why)
			}
		}
	}
}

// TestUse checks the uses of files that docs/verify.md names: files that run come first, then
// whatever a library may open, and text and pictures last.
func TestUse(t *testing.T) {
	n := 0
	for i, use := range []string{"run code in", "open", "ignore"} {
		_, row, _ := strings.Cut(string(world.Read(t, "../../docs/verify.md")), "\n| "+use+" them | ")
		row, _, _ = strings.Cut(row, "\n")
		for k, name := range strings.Split(row, "`") {
			if n++; k%2 == 1 && UseOf(name) != Use(i) {
				t.Errorf("%s: %d, docs/verify.md says %s", name, UseOf(name), use)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d files in the table", n/2)
	}
}

// TestNames reads families, shards and the names that libraries look for.
func TestNames(t *testing.T) {
	for name, want := range map[string]struct {
		family         catalog.Layout
		isLoaded, byIt bool // a library may read it as weights; it finds it by its name alone
	}{
		"model.safetensors":                                    {catalog.Transformers, true, true},
		"a/model-00001-of-00002.safetensors":                   {catalog.Transformers, true, true},
		"model.safetensors.index.json":                         {catalog.Transformers, true, true},
		"model.bf16.safetensors":                               {catalog.Transformers, true, false},
		"model.bf16-00001-of-00002.safetensors":                {catalog.Transformers, true, false},
		"diffusion_pytorch_model-1-of-2.fp16.safetensors":      {catalog.ComfyUI, true, false},
		"diffusion_pytorch_model.safetensors":                  {catalog.Diffusers, true, true},
		"diffusion_pytorch_model.safetensors.index.fp16.json":  {catalog.Diffusers, true, false},
		"PyTorch_Model-1-of-2.BIN":                             {catalog.ComfyUI, true, false},
		"flux1-dev.safetensors":                                {catalog.ComfyUI, false, false},
		"model.txt":                                            {catalog.Transformers, false, false},
		"adapter_model.safetensors":                            {catalog.ComfyUI, false, false},
		"diffusion_pytorch_model-00001-of-00002.safetensors":   {catalog.Diffusers, true, true},
		"diffusion_pytorch_model.safetensors.index.a-b.c.json": {catalog.Diffusers, false, false},
	} {
		if IsSafetensors(name) && FamilyOf(name) != want.family || IsLoaded(name) != want.isLoaded || isFound(name) != want.byIt {
			t.Errorf("%s: %s, %v, %v", name, FamilyOf(name), IsLoaded(name), isFound(name))
		}
	}
	if s, ok := ShardOf("model-00001-of-00002.safetensors"); s.Stem != "model" || !ok || s.Number(2) != "model-00002-of-00002.safetensors" {
		t.Error("shard of", s)
	}
	for name, want := range map[string]bool{"x.safetensors": true, "a/x.safetensors": false, ".x.safetensors": true, "x.SAFETENSORS": false, "x.bin": false} {
		if Loads("", name) != want || Loads("a", "a/"+name) != (want && name != "a/x.safetensors") {
			t.Errorf("%s is loaded: %v", name, !want)
		}
	}
}

// TestFates checks, for every reader of an original, that each file that it opens for another part
// is carried over, or named as lost.
func TestFates(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout catalog.Layout
		dir    string
		parts  []string
		fates  map[Fate][]string
	}{
		{"transformers", catalog.Transformers, "", nil, map[Fate][]string{
			Copied: {"tokenizer.json", "modeling.py", "LICENSE", "LoRA/adapter_config.json"},
			Part:   {"LoRA/adapter_model.safetensors"},
			Left: {"pytorch_model.bin", "pytorch_model.bin.index.json", "model.fp16.safetensors", "original/consolidated.00.pth", "consolidated.safetensors",
				"x.gguf", "onnx/model.onnx", "README.md", ".gitattributes", "config.json", "df11-manifest.json",
				"openvino/openvino_model.bin", "coreml/a/weight.bin", "metal/model.bin", "training_args.bin", "optimizer.pt", "rng_state_0.pth", "random_states_0.pkl", "openvino_model.bin", "checkpoint-12/model.safetensors", "tf_model.h5", "rust_model.ot"},
			Lost: {"adapter_model.safetensors", "adapter_config.json", "adapter_model.bin", "bin/adapter_model.bin", "speech/model.safetensors",
				"spk_dict.pt", "heads.safetensors", "old.safetensors", "voices/a.pt", "draft/model.safetensors", "means.npy", "model.safetensors", "model-00001-of-00002.safetensors", "a/../b", "aux.py", "docs/file.", "1000_steps/model.safetensors"},
		}},
		{"sentence-transformers", catalog.Transformers, "", nil, map[Fate][]string{
			Copied: {"modules.json", "1_Pooling/config.json", "2_Dense/config.json"},
			Part:   {"2_Dense/model.safetensors", "4_Router/query_0_Dense/model.safetensors"},
			Left:   {"2_Dense/pytorch_model.bin"},
			Lost:   {"3_Dense/pytorch_model.bin"},
		}},
		{"diffusers", catalog.Diffusers, "transformer", []string{"text_encoder", "text_encoder_2", "vae", "unsafe"}, map[Fate][]string{
			Copied: {"model_index.json", "transformer/config.json", "vae/config.json"},
			Part:   {"text_encoder/model.safetensors", "text_encoder/model.safetensors.index.json", "vae/up_0.safetensors", "vae/diffusion_pytorch_model.safetensors"},
			Left: {"text_encoder/model.bf16.safetensors", "text_encoder/model.fp16.safetensors", "vae/diffusion_pytorch_model-1-of-2.fp16.safetensors",
				"text_encoder_2/model.safetensors.index.fp16.json", "flux.safetensors", "transformer/diffusion_pytorch_model.fp16.safetensors"},
			Lost: {"unsafe/pytorch_model.bin", "text_encoder_2/model.bf16-00001-of-00002.safetensors", "text_encoder_2/model.fp16.safetensors", "pytorch_lora_weights.safetensors"},
		}},
		{"ComfyUI", catalog.ComfyUI, "", nil, map[Fate][]string{Copied: {"LICENSE.md"}, Left: {"vae.safetensors", "config.json", "adapter_config.json"}}},
	} {
		paths := []string{"speech/config.json"}
		for _, list := range c.fates {
			paths = append(paths, list...)
		}
		slices.Sort(paths)
		o := NewOriginal(c.layout, c.dir, c.parts, paths)
		for want, list := range c.fates {
			for _, name := range list {
				got, why := o.Fate(name)
				if got != want || (why == "") != (got == Copied || got == Part) {
					t.Errorf("%s: %s: fate %d (%s), want %d", c.name, name, got, why, want)
				}
			}
		}
	}
}

// TestTrainingState checks that what a training leaves isn't called weights.
func TestTrainingState(t *testing.T) {
	o := NewOriginal(catalog.Transformers, "", nil, []string{"model.safetensors"})
	for name, want := range map[string]string{
		"optimizer.pt": "left by a training", "rng_state.pth": "left by a training", "training_args.bin": "left by a training",
		"scheduler.pt": "left by a training", "checkpoint-7/pytorch_model.bin": "left by a training", "pytorch_model.bin": "weights in another form",
	} {
		if fate, why := o.Fate(name); fate != Left || why != want {
			t.Errorf("%s: fate %d, %s", name, fate, why)
		}
	}
}

// TestCantFill checks that no dict can have a module that a loader can't fill, as a unit or as a
// part of one. An Embedding can be a unit of its own.
func TestCantFill(t *testing.T) {
	none := func(string) bool { return false }
	facts := map[string]*catalog.Facts{}
	n := map[string]int{}
	for line := range strings.Lines(string(world.Read(t, "../catalog/fills.txt"))) {
		f := strings.Fields(line)
		if facts[f[0]] == nil {
			known := catalog.FactsOf(f[0])
			facts[f[0]] = &known
		}
		n[f[2]]++
		class, module := facts[f[0]], strings.ReplaceAll(f[1], "#", "7")
		for _, at := range []string{module, "model." + module} { // as the base class and others name it
			alone := CantFill(class, at, []string{at}, none)
			if isRead := class.ReadsOutside(at, at) || class.MayTie(at+".weight"); (alone == "") != (f[2] == catalog.Embedding && !isRead) {
				t.Errorf("%s %s, %s, alone: %q", f[0], at, f[2], alone)
			}
			if part := CantFill(class, "x", []string{at}, none); f[2] != catalog.ModuleList && part == "" {
				t.Errorf("%s: %s, %s, is filled as a part", f[0], at, f[2])
			}
		}
	}
	if n["Conv1D"] < 50 || n["DeepseekV3TopkRouter"] < 3 || n[catalog.Embedding] < 2000 || n[catalog.ModuleList] < 3000 {
		t.Errorf("the list is not whole: %v", n)
	}
	parent := func(path string) bool { return path == "a.b" }
	if CantFill(&catalog.Facts{}, "a.b", []string{"a.b"}, parent) == "" || CantFill(&catalog.Facts{}, "a", []string{"a.b", "a.c"}, parent) == "" ||
		CantFill(&catalog.Facts{}, "a", []string{"a.c"}, parent) != "" {
		t.Error("a module that holds others is filled, or a module that holds none is not")
	}
}

// TestNodeCantFill checks that the ComfyUI node fills only its own attributes of a class, in its
// own order.
func TestNodeCantFill(t *testing.T) {
	n := 0
	for _, e := range catalog.All() {
		if !e.NodeLoads() {
			continue
		}
		for _, p := range e.PatternDict {
			unit := strings.NewReplacer(`\d+`, "3", `\.`, ".").Replace(p.Regex)
			if !e.PatternDict.Matches(unit) {
				continue // of alternatives
			}
			if why := NodeCantFill(e.PatternDict, unit, slices.Concat(p.Attrs, []string{""})[:max(1, len(p.Attrs))]); why != "" {
				t.Errorf("%s: %s: %s", e.ID, unit, why)
			}
			for i := range p.Attrs {
				n++
				fewer := slices.Delete(slices.Clone(p.Attrs), i, i+1)
				exchanged := slices.Clone(p.Attrs)
				exchanged[0], exchanged[i] = exchanged[i], exchanged[0]
				for _, attrs := range [][]string{fewer, exchanged} {
					if len(attrs) > 0 && !slices.Equal(attrs, p.Attrs) && NodeCantFill(e.PatternDict, unit, attrs) == "" {
						t.Errorf("%s: %s is filled by %v", e.ID, unit, attrs)
					}
				}
			}
			if NodeCantFill(e.PatternDict, unit+".x", []string{""}) == "" {
				t.Errorf("%s: %s.x is decoded", e.ID, unit)
			}
		}
	}
	if n < 100 {
		t.Error(fmt.Sprint("only ", n, " attributes were tried"))
	}
}

// TestDocs checks the fates of files in the table of docs/convert.md.
func TestDocs(t *testing.T) {
	_, table, _ := strings.Cut(string(world.Read(t, "../../docs/convert.md")), "## What is carried over\n")
	table, _, _ = strings.Cut(table, "## ")
	fates, paths := map[string]string{}, []string{"speech/config.json"}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(line, "|")
		for i, name := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				fates[name], paths = strings.TrimSpace(cells[3]), append(paths, name)
			}
		}
	}
	o := NewOriginal(catalog.Transformers, "", []string{"vae", "text_encoder", "text_encoder_2"}, paths)
	for name, want := range fates {
		f, _ := o.Fate(name)
		if got := map[Fate]string{Copied: "copied", Part: "copied", Lost: "named", Left: "left"}[f]; got != want {
			t.Errorf("%s: %s, the table says %q", name, got, want)
		}
	}
	if len(fates) < 15 {
		t.Errorf("only %d files in the table", len(fates))
	}
}
