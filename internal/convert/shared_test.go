package convert_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// Shards of experts.
const (
	expertsFirst  = "model-00001-of-00002.safetensors"
	expertsSecond = "model-00002-of-00002.safetensors"
)

// experts returns the files of a model with so many modules that those of a layer share a file. The
// last layer lies in both shards.
var experts = sync.OnceValue(func() map[string][]byte {
	files := []*shared.Checkpoint{shared.NewCheckpoint(1), shared.NewCheckpoint(2)}
	index := []string{}
	for layer := range 3 {
		for e := range 340 {
			at := 0
			if layer == 2 && e >= 100 {
				at = 1
			}
			for _, m := range []string{"gate_proj", "up_proj"} {
				name := fmt.Sprintf("model.layers.%d.mlp.experts.%d.%s.weight", layer, e, m)
				files[at].Add(name, "BF16", 0, 16, 16)
				index = append(index, fmt.Sprintf("%q: %q", name, []string{expertsFirst, expertsSecond}[at]))
			}
		}
	}
	return map[string][]byte{
		expertsFirst: files[0].File(), expertsSecond: files[1].File(),
		"model.safetensors.index.json": []byte(`{"metadata": {}, "weight_map": {` + strings.Join(index, ", ") + "}}"),
		"config.json":                  []byte(`{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "tie_word_embeddings": false}`),
		names.Chart:                    hubtest.OwnPicture[names.Chart],
	}
})

// expertWorld returns a hub with experts, each of which becomes a module.
func expertWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil)
	w.AddRepo(sourceRepo, experts())
	w.plan = plan.Options{PatternDict: catalog.PatternDict{{Regex: `model\.layers\.\d+\.mlp\.experts\.\d+`, Attrs: []string{"gate_proj", "up_proj"}}}}
	return w
}

// TestSharedFiles checks files that the modules of a layer share: one run, parts, and runs that are
// stopped make the same bytes, an update makes only the layers again that it changes, and the
// originals come back.
func TestSharedFiles(t *testing.T) {
	t.Parallel()
	const layers, last = "model_layers_0.safetensors model_layers_1.safetensors model_layers_2.safetensors", "model_layers_2.safetensors"
	w := expertWorld(t)
	w.mustConvert(t)
	want := w.target()
	units := slices.DeleteFunc(weightFiles(want), func(name string) bool { return name == "remainder.safetensors" })
	if slices.Sort(units); strings.Join(units, " ") != layers {
		t.Fatalf("files %v", units)
	}
	dir := t.TempDir()
	_, err := convert.Decode(t.Context(), convert.DecodeOptions{Pair: w.pair(t, 0), OutDir: dir, Means: forward.Means{Workers: 2}})
	shared.Must(t, err)
	for _, name := range []string{expertsFirst, expertsSecond} {
		if !bytes.Equal(shared.Read(t, filepath.Join(dir, name)), experts()[name]) {
			t.Errorf("%s was not restored", name)
		}
	}

	parts := expertWorld(t)
	for i := 1; i <= 2; i++ {
		parts.mustConvert(t, part(i, 2))
	}
	parts.mustConvert(t, finishing)
	sameFiles(t, parts.target(), want)

	small := expertWorld(t)
	small.mustConvert(t, func(o *convert.Options) { o.Disk = 2 << 20 })
	sameFiles(t, small.target(), want)

	for n := 5; n <= 45; n += 20 {
		w, work := expertWorld(t), t.TempDir()
		_ = w.stopped(t, work, func(stop func()) {
			w.Inject(hubtest.Fault{Nth: n, Action: func(x *hubtest.Exchange) { stop(); x.Next(x.ResponseWriter) }})
		})
		_, err := w.convert(t.Context(), t, work)
		shared.Must(t, err)
		sameFiles(t, w.target(), want)
	}

	b := slices.Clone(experts()[expertsSecond])
	b[len(b)-1] ^= 1
	w.Push(sourceRepo, "main", map[string][]byte{expertsSecond: b})
	if r := w.mustConvert(t); r.Made.Now != 1 {
		t.Errorf("%d outputs were made, want %s", r.Made.Now, last)
	}
	for name, f := range w.target() {
		if strings.HasPrefix(name, "model_layers") && (f == want[name]) != (name != last) {
			t.Errorf("%s: %v, was %v", name, f, want[name])
		}
	}
}
