//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// tieFamily is a class of models that may store a matrix twice: the second name of the pair isn't
// stored in a result.
type tieFamily struct {
	like, config    string
	block           string // path, with %d for the number
	attrs, siblings []string
	stored, second  string // modules
}

var tieFamilies = []tieFamily{
	{
		like: "t5-encoder", config: `{"model_type": "t5", "architectures": ["T5EncoderModel"], "num_layers": 2}`, block: "encoder.block.%d",
		attrs: strings.Fields("layer.0.SelfAttention.q layer.0.SelfAttention.k layer.1.DenseReluDense.wo"), siblings: []string{"layer.0.layer_norm"},
		stored: "shared", second: "encoder.embed_tokens",
	},
	{
		like: "whisper", config: `{"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "decoder_layers": 2}`,
		block: "model.decoder.layers.%d", attrs: strings.Fields("self_attn.k_proj self_attn.v_proj fc1"), siblings: []string{"final_layer_norm"},
		stored: "model.decoder.embed_tokens", second: "proj_out",
	},
	{
		like: "modernbert", config: `{"model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "num_hidden_layers": 2}`,
		block: "model.layers.%d", attrs: strings.Fields("attn.Wqkv attn.Wo mlp.Wi"), siblings: []string{"mlp_norm"},
		stored: "model.embeddings.tok_embeddings", second: "decoder",
	},
	{
		config: `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "tie_word_embeddings": true}`,
		block:  "model.layers.%d", attrs: strings.Fields("self_attn.q_proj self_attn.k_proj mlp.up_proj"), siblings: []string{"input_layernorm"},
		stored: "model.embed_tokens", second: "lm_head",
	},
	{
		config: `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "tie_word_embeddings": false}`,
		block:  "model.layers.%d", attrs: strings.Fields("self_attn.q_proj self_attn.k_proj mlp.up_proj"), siblings: []string{"input_layernorm"},
		stored: "model.embed_tokens", second: "lm_head",
	},
}

// tied reports whether the class shares the two matrices, so that a result stores one of them.
func (f *tieFamily) tied() bool { return !strings.Contains(f.config, "false") }

// tieModel is a model of a family, before it's divided into files.
type tieModel struct {
	*tieFamily
	tensors    []world.Tensor
	compressed bool // the stored matrix is a unit
	files      int
}

// newTieModel makes a model whose second matrix is missing, equal, or different.
func newTieModel(rnd *rand.Rand, f *tieFamily, second string, compressed bool) *tieModel {
	m := &tieModel{tieFamily: f, compressed: compressed, files: 1 + rnd.IntN(2)}
	c := world.NewCheckpoint(rnd.Uint64())
	c.Add(f.stored+".weight", "BF16", 0, 48, 32)
	switch second {
	case "equal":
		c.Again(f.second + ".weight")
	case "differs":
		c.Again(f.second + ".weight")
		flip(rnd, &c.Tensors[1])
	}
	for i := range 2 {
		for _, a := range f.attrs {
			c.Add(fmt.Sprintf(f.block, i)+"."+a+".weight", "BF16", 0, 32, 32)
		}
		for _, s := range f.siblings {
			c.Add(fmt.Sprintf(f.block, i)+"."+s+".weight", "BF16", 0, 32)
		}
	}
	c.Add("last_norm.weight", "BF16", 0, 32)
	m.tensors = c.Tensors
	rnd.Shuffle(len(m.tensors), func(i, j int) { m.tensors[i], m.tensors[j] = m.tensors[j], m.tensors[i] })
	return m
}

// flip changes a bit of a tensor, in a copy of its bytes.
func flip(rnd *rand.Rand, x *world.Tensor) {
	x.Data = bytes.Clone(x.Data)
	x.Data[rnd.IntN(len(x.Data))] ^= 1 << rnd.IntN(8)
}

// repo divides the model into weight files, and adds the small ones.
func (m *tieModel) repo() map[string][]byte {
	files := map[string][]byte{names.Config: []byte(m.config), "README.md": []byte("---\nlicense: mit\n---\n")}
	if m.files == 1 {
		files[names.Weights] = world.Safetensors(m.tensors)
		return files
	}
	half := len(m.tensors) / 2
	index := map[string]string{}
	for i, part := range [][]world.Tensor{m.tensors[:half], m.tensors[half:]} {
		name := fmt.Sprintf("model-%05d-of-00002.safetensors", i+1)
		files[name] = world.Safetensors(part)
		for _, x := range part {
			index[x.Name] = name
		}
	}
	files["model.safetensors.index.json"], _ = json.Marshal(map[string]any{"weight_map": index}) //nolint:errchkjson // strings
	return files
}

// dict returns the flag with the model's pattern dict.
func (m *tieModel) dict(t *testing.T) string {
	units := map[string][]string{strings.ReplaceAll(strings.ReplaceAll(m.block, ".", `\.`), "%d", `\d+`): m.attrs}
	if m.compressed {
		units[strings.ReplaceAll(m.stored, ".", `\.`)] = []string{}
	}
	if !m.tied() {
		units[m.second] = []string{}
	}
	b, err := json.Marshal(units)
	world.Must(t, err)
	file := filepath.Join(t.TempDir(), "dict.json")
	world.Write(t, file, b)
	return "--pattern-dict=" + file
}

// holds returns what a result has to hold, by name: all tensors, without a second copy that is
// equal. ok is false if nothing can hold the model, because the copies differ.
func (m *tieModel) holds() (all map[string]string, ok bool) {
	all = map[string]string{}
	for _, x := range m.tensors {
		all[x.Name] = fmt.Sprint(x.DType, x.Shape, world.Sum(x.Data))
	}
	second, exists := all[m.second+".weight"]
	if !m.tied() || !exists {
		return all, true
	}
	delete(all, m.second+".weight")
	first, exists := all[m.stored+".weight"]
	all[m.stored+".weight"] = second // the name that a loader looks for
	return all, !exists || first == second
}

// tieChanges are ways in which another model may differ from a model, or only seem to.
var tieChanges = map[string]func(rnd *rand.Rand, m *tieModel){
	"none":  func(*rand.Rand, *tieModel) {},
	"a bit": func(rnd *rand.Rand, m *tieModel) { flip(rnd, &m.tensors[rnd.IntN(len(m.tensors))]) },
	"a tensor less": func(rnd *rand.Rand, m *tieModel) {
		i := rnd.IntN(len(m.tensors))
		m.tensors = slices.Delete(m.tensors, i, i+1)
	},
	"a tensor more": func(_ *rand.Rand, m *tieModel) {
		m.tensors = append(m.tensors, world.Tensor{Name: "more.weight", DType: "F32", Shape: []int64{1}, Data: make([]byte, 4)})
	},
	"another name": func(rnd *rand.Rand, m *tieModel) { m.tensors[rnd.IntN(len(m.tensors))].Name = "renamed.weight" },
	"other files":  func(_ *rand.Rand, m *tieModel) { m.files = 3 - m.files },
	"another order": func(rnd *rand.Rand, m *tieModel) {
		rnd.Shuffle(len(m.tensors), func(i, j int) { m.tensors[i], m.tensors[j] = m.tensors[j], m.tensors[i] })
	},
	"a second copy": func(_ *rand.Rand, m *tieModel) {
		m.tensors = slices.DeleteFunc(slices.Clone(m.tensors), func(x world.Tensor) bool { return x.Name == m.second+".weight" })
		i := slices.IndexFunc(m.tensors, func(x world.Tensor) bool { return x.Name == m.stored+".weight" })
		twin := m.tensors[i]
		twin.Name = m.second + ".weight"
		m.tensors = append(m.tensors, twin)
	},
	"another second copy": func(rnd *rand.Rand, m *tieModel) {
		if i := slices.IndexFunc(m.tensors, func(x world.Tensor) bool { return x.Name == m.second+".weight" }); i >= 0 {
			flip(rnd, &m.tensors[i])
		}
	},
}

// agreement converts models in every way and compares the verdicts.
type agreement struct {
	*testing.T
	*hubtest.Server
	rnd *rand.Rand
	n   int // of repos so far
}

// TestAllWaysAgree checks on random models that may store a matrix twice that all ways have the same
// verdict. Either every conversion refuses a model, fresh, stopped and resumed, and as an update, or
// all of them make the same bytes, which decode to the source's. And whatever another original has in
// common with a model, verify says the same of the pair at each level that compares weights, in
// folders and in repos. DF11_DEEP tries more models.
func TestAllWaysAgree(t *testing.T) {
	a := &agreement{T: t, Server: startHub(t, "hf_tester")}
	for _, seed := range world.Seeds(t, 1, 40) {
		a.rnd = rand.New(rand.NewPCG(seed, 2))
		for i := range tieFamilies {
			for _, second := range []string{"missing", "equal", "differs"} {
				for _, compressed := range []bool{false, true} {
					f := &tieFamilies[i] // of a head's embedding, a dict needs both or none
					if compressed && f.like == "" || !f.tied() && second == "missing" {
						continue
					}
					name := fmt.Sprintf("seed %d, %s, second copy %s, compressed %v", seed, cmp.Or(f.like, "llama"), second, compressed)
					a.check(name, newTieModel(a.rnd, f, second, compressed))
				}
			}
		}
	}
}

// newRepo returns the name of a repo that doesn't exist.
func (a *agreement) newRepo(kind string) string {
	a.n++
	return fmt.Sprintf("tester/%s%d", kind, a.n)
}

// check converts a model in every way. If that succeeds, it verifies the result against others.
func (a *agreement) check(name string, m *tieModel) {
	flags := []string{m.dict(a.T), "--unfilled", "-q"}
	if m.like != "" {
		flags = append(flags, "--like", m.like)
	}
	_, ok := m.holds()
	want := map[bool]int{true: exitOK, false: exitRefused}[ok]
	local, source := a.TempDir(), a.newRepo("source")
	world.WriteAll(a.T, local, m.repo())
	a.AddRepo(source, m.repo())
	results := map[string]map[string]string{}
	ran := func(way string, code int, diag string, result func() map[string]string) {
		a.Helper()
		if code != want || !ok && !strings.Contains(diag, " is tied to ") {
			a.Fatalf("%s, %s: exit %d, want %d: %s", name, way, code, want, diag)
		}
		if ok {
			results[way] = result()
		}
	}

	out := filepath.Join(a.TempDir(), "out")
	code, _, diag := program(a.T, append(flags, local, "-o", out)...)
	ran("into a folder", code, diag, func() map[string]string { return weightsIn(a.T, out) })

	fresh := a.newRepo("fresh")
	a.ResetLog()
	code, _, diag = program(a.T, append(flags, source, "--push", "--repo-id", fresh, "--work-dir", a.TempDir())...)
	requests := len(a.Requests())
	ran("into a repo", code, diag, func() map[string]string { return a.weightsOf(fresh) })

	resumed, work := a.newRepo("resumed"), a.TempDir()
	a.stopped(1+a.rnd.IntN(requests), append(flags, source, "--push", "--repo-id", resumed, "--work-dir", work)...)
	code, _, diag = program(a.T, append(flags, source, "--push", "--repo-id", resumed, "--work-dir", work)...)
	ran("into a repo, resumed", code, diag, func() map[string]string { return a.weightsOf(resumed) })

	again := filepath.Join(a.TempDir(), "out")
	a.stopped(1+a.rnd.IntN(requests), append(flags, source, "-o", again)...)
	code, _, diag = program(a.T, append(flags, source, "-o", again)...)
	ran("into a folder, resumed", code, diag, func() map[string]string { return weightsIn(a.T, again) })

	updated, old := a.newRepo("updated"), newTieModel(a.rnd, m.tieFamily, "equal", m.compressed)
	old.files, old.tensors = m.files, slices.Clone(m.tensors)
	tieChanges["a second copy"](a.rnd, old)
	a.AddRepo(updated, old.repo())
	must(a.T, append(flags, updated, "--push", "--repo-id", updated+"-DF11", "--work-dir", a.TempDir())...)
	a.Push(updated, "main", m.repo())
	code, _, diag = program(a.T, append(flags, updated, "--push", "--repo-id", updated+"-DF11", "--work-dir", a.TempDir())...)
	ran("as an update", code, diag, func() map[string]string { return a.weightsOf(updated + "-DF11") })

	for way, result := range results {
		if !maps.Equal(result, results["into a folder"]) {
			a.Fatalf("%s, %s: other bytes: %v, %v", name, way, result, results["into a folder"])
		}
	}
	if ok {
		decoded := filepath.Join(a.TempDir(), "decoded")
		must(a.T, "decode", out, "-o", decoded, "-q")
		if original := weightsIn(a.T, local); !maps.Equal(weightsIn(a.T, decoded), original) {
			a.Fatalf("%s: it decodes to other files", name)
		}
		a.verify(name, m, out, fresh)
	}
}

// stopped runs the program until the hub gets its k-th request.
func (a *agreement) stopped(k int, args ...string) {
	ctx, stop := context.WithCancelCause(a.Context())
	defer stop(nil)
	a.Inject(hubtest.Fault{Nth: k, Action: func(x *hubtest.Exchange) {
		stop(errInterrupted)
		x.Next(x.ResponseWriter)
	}})
	defer a.ClearFaults()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	world.Must(a.T, err)
	defer null.Close()
	execute(ctx, newUI(null, null), args)
}

// verify verifies the result of a model against a few others.
func (a *agreement) verify(name string, m *tieModel, folder, repo string) {
	kinds := slices.Sorted(maps.Keys(tieChanges))
	a.rnd.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, kind := range kinds[:2] {
		other := &tieModel{m.tieFamily, slices.Clone(m.tensors), m.compressed, m.files}
		tieChanges[kind](a.rnd, other)
		mine, _ := m.holds()
		theirs, ok := other.holds()
		want := exitWrong
		if ok && maps.Equal(mine, theirs) {
			want = exitOK
		}
		dir, original := a.TempDir(), a.newRepo("other")
		world.WriteAll(a.T, dir, other.repo())
		a.AddRepo(original, other.repo())
		for _, level := range []string{"structure", "proof", "full"} {
			for _, pair := range [][2]string{{folder, dir}, {repo, original}} {
				code, out, diag := program(a.T, "verify", pair[0], "--against", pair[1], "--level", level, "--json")
				var doc struct{ Equal bool }
				world.Must(a.T, json.Unmarshal([]byte(out), &doc))
				agrees := code == want && doc.Equal == (want == exitOK)
				if level == "structure" { // it sees no bits, and claims nothing
					agrees = !doc.Equal && (code == exitOK || code == want)
				}
				if !agrees {
					a.Fatalf("%s, against one with %s, level %s of %s: exit %d, want %d: %s%s", name, kind, level, pair, code, want, out, diag)
				}
			}
		}
	}
}

// weightsIn returns the SHA-256 of the weight files of a folder, by name.
func weightsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for name, b := range world.ReadAll(t, dir) {
		if path.Ext(name) == ".safetensors" {
			sums[name] = world.Sum(b)
		}
	}
	return sums
}

// weightsOf returns the same of a repo.
func (a *agreement) weightsOf(repo string) map[string]string {
	sums := sumsOf(a.Server, repo)
	maps.DeleteFunc(sums, func(name, _ string) bool { return path.Ext(name) != ".safetensors" })
	return sums
}
