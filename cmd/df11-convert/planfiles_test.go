package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// sprinkled are files that a source may have next to what a conversion needs.
var sprinkled = map[string]string{
	"README.md":              "---\nlicense: mit\n---\n# A model\n",
	"LICENSE":                "a license",
	"df11.png":               "a picture of the source's own",
	"DF11.png":               "another one",
	".gitattributes":         "*.safetensors filter=lfs diff=lfs merge=lfs -text\n",
	".gitignore":             "*.tmp\n",
	"tokenizer.json":         "{}",
	"tokenizer_config.json":  "{}",
	"generation_config.json": "{}",
	"chat_template.jinja":    "{{ messages }}",
	"modeling_own.py":        "import torch\n",
	"notes/plan.txt":         "a note",
	"images/cat.png":         "a picture",
	"original/params.json":   "{}",
	"pytorch_model.bin":      "pickled",
	"onnx/model.onnx":        "another format",
	"weights.gguf":           "GGUF",
}

// sprinkle adds about half of the files.
func sprinkle(rnd *rand.Rand, files map[string][]byte) map[string][]byte {
	for _, name := range slices.Sorted(maps.Keys(sprinkled)) {
		_, is := files[name]
		twin := name == "DF11.png" && files["df11.png"] != nil || name == "df11.png" && files["DF11.png"] != nil
		if !is && !twin && rnd.IntN(2) == 0 {
			files[name] = []byte(sprinkled[name])
		}
	}
	return files
}

// TestPlanListsEveryFile checks, for random models of every layout, that plan lists exactly the files
// that the folder and the repo then hold, and that the sizes it knows are theirs.
func TestPlanListsEveryFile(t *testing.T) {
	hub := startHub(t, "hf_x", hubtest.WithUser("hf_x", hubtest.User{Name: "tester"}))
	kinds := map[string]func(seed uint64) map[string][]byte{
		"text": func(uint64) map[string][]byte { return llamaFiles("BF16", 0, "") },
		"shards": func(seed uint64) map[string][]byte {
			return hubtest.NewLlama(seed, hubtest.ModelOptions{ShardBytes: 1 << 18}).Files()
		},
		"pipeline": func(uint64) map[string][]byte { return denoiserFiles() },
		"single":   func(uint64) map[string][]byte { return map[string][]byte{"flux.safetensors": comfyFlux("")} },
		"experts":  func(uint64) map[string][]byte { return expertFiles(2) },
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, seed := range world.Seeds(t, 2, 40) {
			files := sprinkle(rand.New(rand.NewPCG(seed, uint64(len(kind)))), kinds[kind](seed))
			name := fmt.Sprintf("org/%s%d", kind, seed)
			hub.AddRepo(name, files)
			local := filepath.Join(t.TempDir(), filepath.Base(name)+"-local")
			world.WriteAll(t, local, files)
			for i, source := range []string{name, local} {
				var args []string
				if kind == "pipeline" && i == 1 && seed%2 == 1 {
					args = []string{"--layout", "single"}
				}
				var plan pipeline.Forecast
				world.Must(t, json.Unmarshal([]byte(must(t, append([]string{"plan", source, "--sample-bytes", "1GB", "--json"}, args...)...)), &plan))
				out, repo := filepath.Join(t.TempDir(), "out"), fmt.Sprintf("tester/%s%d-%d", kind, seed, i)
				must(t, append([]string{source, "-o", out}, args...)...)
				must(t, append([]string{source, "--push", "--repo-id", repo, "--license", "mit"}, args...)...)
				inFolder, inRepo := map[string]int64{}, map[string]int64{}
				for path, b := range world.ReadAll(t, out) {
					inFolder[path] = int64(len(b))
				}
				for path, f := range hub.Files(repo, "main") {
					inRepo[path] = f.Size
				}
				checkFiles(t, source+" in a repo", &plan, inRepo, true)
				checkFiles(t, source+" in a folder", &plan, inFolder, false)
			}
		}
	}
}

// checkFiles compares the files that a plan lists with those that are there, and their sizes with the
// sizes that the plan knows.
func checkFiles(t *testing.T, where string, plan *pipeline.Forecast, there map[string]int64, isRepo bool) {
	t.Helper()
	listed, sum := map[string]bool{}, int64(0)
	for _, f := range plan.ResultFiles {
		if f.Bytes != nil {
			sum += *f.Bytes
		}
		if f.Kind == "hub" && !isRepo {
			continue
		}
		listed[f.Path] = true
		size, is := there[f.Path]
		isManifest := f.Path == "df11-manifest.json"
		isKnown := f.Bytes != nil && !isManifest && (f.Kind != "weights" || plan.Estimate.Exact)
		if !is || isKnown && *f.Bytes != size {
			t.Errorf("%s: plan lists %s (%s), which is %v with %d bytes", where, f.Path, f.Kind, is, size)
		}
		if isManifest && (size > *f.Bytes || *f.Bytes > size*4/3+2000) {
			t.Errorf("%s: plan estimates %d bytes for the manifest of %d", where, *f.Bytes, size)
		}
		made := f.Kind == "written" && slices.Contains([]string{"README.md", "df11.png"}, f.Path)
		if isUnknown := f.Bytes == nil; isUnknown != (made || f.Kind == "hub") {
			t.Errorf("%s: plan says %v bytes of %s", where, f.Bytes, f.Path)
		}
	}
	for path := range there {
		if !listed[path] {
			t.Errorf("%s: plan doesn't list %s", where, path)
		}
	}
	if sum != plan.Needs.Upload {
		t.Errorf("%s: the sizes add up to %d, and upload_bytes is %d", where, sum, plan.Needs.Upload)
	}
}
