package hubtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// layout reads a safetensors file: header in order, and data by name.
func layout(t *testing.T, file []byte) (names []string, data map[string][]byte) {
	t.Helper()
	n := binary.LittleEndian.Uint64(file)
	raw, rest := file[8:8+n], file[8+n:]
	if len(raw)%8 != 0 {
		t.Error("the header is not padded to 8 bytes")
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(raw, &header); err != nil {
		t.Fatal(err)
	}
	data = map[string][]byte{}
	for name, v := range header {
		if name == "__metadata__" {
			continue
		}
		e := decode[struct {
			DType   string  `json:"dtype"`
			Shape   []int64 `json:"shape"`
			Offsets []int64 `json:"data_offsets"`
		}](t, string(v))
		nBytes := int64(2)
		for _, d := range e.Shape {
			nBytes *= d
		}
		if e.DType != "BF16" || e.Offsets[1]-e.Offsets[0] != nBytes {
			t.Errorf("%s: %s of %d bytes, shape %v", name, e.DType, e.Offsets[1]-e.Offsets[0], e.Shape)
		}
		data[name] = rest[e.Offsets[0]:e.Offsets[1]]
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return bytes.Index(raw, []byte(`"`+a+`"`)) - bytes.Index(raw, []byte(`"`+b+`"`))
	})
	return names, data
}

func TestModelIsDeterministic(t *testing.T) {
	opt := ModelOptions{ShardBytes: 50_000, ExtraFiles: true}
	a, b := LlamaModel(7, opt), LlamaModel(7, opt)
	for p := range a {
		if !bytes.Equal(a[p], b[p]) {
			t.Errorf("%s differs", p)
		}
	}
	first := NewLlama(7, opt).Weights[0].Path
	if bytes.Equal(a[first], LlamaModel(8, opt)[first]) {
		t.Error("the seed changes nothing")
	}
	if got := sha(LlamaModel(1, ModelOptions{})["model.safetensors"]); got != goldenWeights {
		t.Errorf("the weights of seed 1 changed: %s", got)
	}
}

// goldenWeights pins the generator: other tests record hashes of its models.
const goldenWeights = "696436427c57ca5d67a593c3f8baeb5fd5d77973e5243e7c3b4c44f292872aec"

func TestModelReadAt(t *testing.T) {
	m := NewQwen3(2, ModelOptions{Vocab: 333, Hidden: 48, HeadDim: 10})
	body := m.Weights[0]
	whole := m.Files()[body.Path]
	for _, r := range [][2]int64{{0, 1}, {0, body.Size}, {7, 4096}, {1001, 1}, {5000, 12345}, {body.Size - 3, 3}} {
		p := make([]byte, r[1])
		if n, err := body.Body.ReadAt(p, r[0]); n != len(p) || err != nil || !bytes.Equal(p, whole[r[0]:r[0]+r[1]]) {
			t.Errorf("%v: %d, %v", r, n, err)
		}
	}
	if n, err := body.Body.ReadAt(make([]byte, 10), body.Size-4); n != 4 || err == nil {
		t.Errorf("over the end: %d, %v", n, err)
	}
}

func TestShards(t *testing.T) {
	files := LlamaModel(1, ModelOptions{ShardBytes: 40_000})
	index := decode[struct {
		Metadata struct {
			TotalSize int64 `json:"total_size"`
		}
		WeightMap map[string]string `json:"weight_map"`
	}](t, string(files["model.safetensors.index.json"]))
	layerFiles, total := map[string]bool{}, int64(0)
	for name, file := range index.WeightMap {
		_, data := layout(t, files[file])
		if data[name] == nil {
			t.Errorf("%s is not in %s", name, file)
		}
		total += int64(len(data[name]))
		if strings.HasPrefix(name, "model.layers.1.") {
			layerFiles[file] = true
		}
	}
	if total != index.Metadata.TotalSize || len(layerFiles) < 3 {
		t.Errorf("total %d, index %d; a unit lies in %d files", total, index.Metadata.TotalSize, len(layerFiles))
	}
}

func TestOrders(t *testing.T) {
	opt := ModelOptions{Layers: 11}
	opt.Order = OrderName
	names, _ := layout(t, LlamaModel(1, opt)["model.safetensors"])
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %q", names)
	}
	opt.Order = OrderScattered
	names, data := layout(t, LlamaModel(1, opt)["model.safetensors"])
	first := slices.Index(names, "model.layers.0.mlp.down_proj.weight")
	if names[first+1] != "model.layers.1.mlp.down_proj.weight" {
		t.Errorf("not scattered: %q", names[:8])
	}
	opt.Order = OrderModel
	_, plain := layout(t, LlamaModel(1, opt)["model.safetensors"])
	if !bytes.Equal(data["lm_head.weight"], plain["lm_head.weight"]) {
		t.Error("the order changes the weights")
	}
}

func TestFamilies(t *testing.T) {
	has := func(files map[string][]byte, name string) bool {
		_, data := layout(t, files["model.safetensors"])
		return data[name] != nil
	}
	tied := NewQwen3(1, ModelOptions{Tied: true}).Files()
	stored := NewQwen3(1, ModelOptions{Tied: true, StoreTied: true}).Files()
	switch {
	case has(tied, "lm_head.weight"), !has(stored, "lm_head.weight"), !has(LlamaModel(1, ModelOptions{}), "lm_head.weight"):
		t.Error("lm_head")
	case !has(tied, "model.layers.0.self_attn.q_norm.weight"):
		t.Error("q_norm")
	case !has(NewQwen2(1, ModelOptions{}).Files(), "model.layers.0.self_attn.k_proj.bias"):
		t.Error("bias")
	}
	_, data := layout(t, stored["model.safetensors"])
	if !bytes.Equal(data["lm_head.weight"], data["model.embed_tokens.weight"]) {
		t.Error("the stored head is not the embedding")
	}
	for _, p := range []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"} {
		if !json.Valid(tied[p]) {
			t.Errorf("%s is not JSON: %s", p, tied[p])
		}
	}
	if !bytes.Contains(tied["config.json"], []byte(`"tie_word_embeddings": true`)) {
		t.Error("config is not tied")
	}
	if errs := checkCard(string(tied["README.md"])); errs != nil {
		t.Errorf("card: %v", errs)
	}
}

// TestWeightsLookTrained checks what compression depends on: few exponents,
// random mantissas, no NaN, some outliers.
func TestWeightsLookTrained(t *testing.T) {
	_, data := layout(t, LlamaModel(1, ModelOptions{Hidden: 256})["model.safetensors"])
	var exponents [256]float64
	var mantissas [128]float64
	n, outliers := 0.0, 0
	for name, d := range data {
		if !strings.HasSuffix(name, "_proj.weight") {
			continue
		}
		for ; len(d) > 0; d = d[2:] {
			v := binary.LittleEndian.Uint16(d)
			exponents[v>>7&0xff]++
			mantissas[v&0x7f]++
			n++
			if f := math.Float32frombits(uint32(v) << 16); math.Abs(float64(f)) > 0.5 {
				outliers++
			}
		}
	}
	if h := entropy(exponents[:], n); h < 2.4 || h > 3.2 {
		t.Errorf("entropy of the exponents: %.2f bits", h)
	}
	if h := entropy(mantissas[:], n); h < 6.9 {
		t.Errorf("entropy of the mantissas: %.3f bits", h)
	}
	if outliers == 0 || exponents[255] != 0 {
		t.Errorf("%d outliers, %.0f not finite", outliers, exponents[255])
	}
}

func entropy(counts []float64, n float64) float64 {
	h := 0.0
	for _, c := range counts {
		if c > 0 {
			h -= c / n * math.Log2(c/n)
		}
	}
	return h
}

// TestAddModel serves a model that is never in memory as a whole.
func TestAddModel(t *testing.T) {
	s := Start(t)
	m := NewLlama(4, ModelOptions{ShardBytes: 100_000})
	s.AddModel("org/m", m)
	for p, content := range m.Files() {
		if f := s.Files("org/m", "main")[p]; f.Size != int64(len(content)) || f.SHA256 != "" && f.SHA256 != sha(content) {
			t.Errorf("%s: %+v", p, f)
		}
	}
	p := m.Weights[1].Path
	if got := must(t, "GET", location(t, s, "org/m", p), "", ""); sha([]byte(got.body)) != s.Files("org/m", "main")[p].SHA256 {
		t.Error("the served bytes have another hash")
	}
}

func BenchmarkModel(b *testing.B) {
	opt := ModelOptions{Hidden: 512, Layers: 4, Vocab: 8192, ShardBytes: 8 << 20}
	b.SetBytes(NewLlama(0, opt).Size())
	for seed := uint64(1); b.Loop(); seed++ {
		NewLlama(seed, opt).Files()
	}
}
