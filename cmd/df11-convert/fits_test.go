package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

var updateFits = flag.Bool("update-fits", false, "write the table of docs/fits.md")

// fitsCards are the columns of the table, in GB.
var fitsCards = []int{12, 16, 24, 32, 48, 80}

// TestFitsPage checks docs/fits.md against the command plan: some of its models, or all with
// DF11_DEEP.
func TestFitsPage(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "fits.md")
	old, experts, _ := strings.Cut(string(world.Read(t, page)), expertsHeading)
	intro, _, _ := strings.Cut(old, "| model |")
	var b strings.Builder
	b.WriteString(intro + tableHead(fitsCards))
	const few = 7
	for i, line := range strings.Split(strings.TrimSpace(string(world.Read(t, "testdata/fits/models.txt"))), "\n") {
		if !*updateFits && !world.Deep() && i%few != 1 {
			continue
		}
		repo, config, _ := strings.Cut(line, " ")
		row := tableRow(t, repo, sparseModel(t, config, shapesOf(t, config)), fitsCards, fitsCell)
		if b.WriteString(row); !*updateFits && !strings.Contains(old, row) {
			t.Errorf("%s lacks %s: run this test with -update-fits", page, row)
		}
	}
	if *updateFits {
		world.Must(t, os.WriteFile(page, []byte(b.String()+expertsHeading+experts), 0o644))
	}
}

// tableHead returns the head of a table of models with a column for each card.
func tableHead(cards []int) string {
	head := "| model | BF16 | DF11 |"
	for _, gb := range cards {
		head += fmt.Sprintf(" %d GB |", gb)
	}
	return head + "\n| --- | ---: | ---: |" + strings.Repeat(" --- |", len(cards)) + "\n"
}

// tableRow plans a model for each card, and returns its row in such a table.
func tableRow(t *testing.T, repo, dir string, cards []int, cell func(pipeline.Fit) string) string {
	t.Helper()
	var cells []string
	var sizes string
	for _, gb := range cards {
		var doc struct {
			BF16 int64 `json:"source_bytes"`
			DF11 struct {
				Bytes int64 `json:"output_bytes"`
			} `json:"estimate"`
			GPUs []pipeline.Fit `json:"gpus"`
		}
		out := must(t, "plan", dir, "--json", "--sample-bytes", "0", "--vram", fmt.Sprintf("%dGB", gb))
		world.Must(t, json.Unmarshal([]byte(out), &doc))
		sizes = fmt.Sprintf("%s | %s", human.Bytes(doc.BF16), human.Bytes(doc.DF11.Bytes))
		cells = append(cells, cell(doc.GPUs[0]))
	}
	return fmt.Sprintf("| %s | %s | %s |\n", repo, sizes, strings.Join(cells, " | "))
}

// fitsCell returns the cell of one card.
func fitsCell(g pipeline.Fit) string {
	bf16, df11 := g.BF16Context, g.DF11Context
	tokens := func(n int64) string {
		if n < 1024 {
			return "under 1k"
		}
		return fmt.Sprintf("%dk", n/1024)
	}
	switch {
	case df11 == 0 && bf16 == 0:
		return "–"
	case bf16 == 0:
		return "**DF11 " + tokens(df11) + "**"
	case bf16 == df11:
		return "both " + tokens(bf16)
	case df11 == 0:
		return "BF16 " + tokens(bf16)
	}
	return "BF16 " + tokens(bf16) + ", DF11 " + tokens(df11)
}

// sparseModel makes a folder with a config and a sparse weight file, named as the config's library
// names it: the header is true, and a hole stands for the weights.
func sparseModel(t *testing.T, config string, shapes map[string][]int64) string {
	t.Helper()
	parsed, err := catalog.ReadConfig("config.json", []byte(config))
	world.Must(t, err)
	weights := "model.safetensors"
	if parsed.ClassName != "" {
		weights = "diffusion_pytorch_model.safetensors"
	}
	dir := t.TempDir()
	var tensors []safetensors.Entry
	for name, shape := range shapes {
		tensors = append(tensors, safetensors.Entry{Name: name, DType: safetensors.BF16, Shape: shape})
	}
	h, err := safetensors.NewHeader(nil, tensors)
	world.Must(t, err)
	file := filepath.Join(dir, weights)
	world.Write(t, file, h.Bytes())
	if err := os.Truncate(file, h.Size()); err != nil {
		t.Skipf("NOT TESTED: no room for a hole of %s here: %v", human.Bytes(h.Size()), err)
	}
	world.Write(t, filepath.Join(dir, "config.json"), config)
	return dir
}

// shapesOf returns the shapes that a config of the Llama kind gives its matrices. What else there
// is takes too little to show.
func shapesOf(t *testing.T, config string) map[string][]int64 {
	t.Helper()
	raw, err := catalog.ReadConfig("config.json", []byte(config))
	world.Must(t, err)
	n := func(name string) int64 { return int64(catalog.Decode[float64](raw.Raw[name])) }
	hidden, heads, kv, inner := n("hidden_size"), n("num_attention_heads"), n("num_key_value_heads"), n("intermediate_size")
	dim := n("head_dim")
	if dim == 0 {
		dim = hidden / heads
	}
	out := map[string][]int64{"model.embed_tokens.weight": {n("vocab_size"), hidden}}
	if !catalog.Decode[bool](raw.Raw["tie_word_embeddings"]) {
		out["lm_head.weight"] = []int64{n("vocab_size"), hidden}
	}
	for i := range n("num_hidden_layers") {
		layer := fmt.Sprintf("model.layers.%d.", i)
		mlp := func(prefix string, inner int64) {
			out[prefix+"gate_proj.weight"] = []int64{inner, hidden}
			out[prefix+"up_proj.weight"] = []int64{inner, hidden}
			out[prefix+"down_proj.weight"] = []int64{hidden, inner}
		}
		out[layer+"self_attn.o_proj.weight"] = []int64{hidden, heads * dim}
		if raw.ModelType == "phi3" {
			out[layer+"self_attn.qkv_proj.weight"] = []int64{(heads + 2*kv) * dim, hidden}
			out[layer+"mlp.gate_up_proj.weight"] = []int64{2 * inner, hidden}
			out[layer+"mlp.down_proj.weight"] = []int64{hidden, inner}
		} else {
			out[layer+"self_attn.q_proj.weight"] = []int64{heads * dim, hidden}
			out[layer+"self_attn.k_proj.weight"] = []int64{kv * dim, hidden}
			out[layer+"self_attn.v_proj.weight"] = []int64{kv * dim, hidden}
		}
		switch experts := n("num_experts"); {
		case experts > 0:
			out[layer+"mlp.gate.weight"] = []int64{experts, hidden}
			for e := range experts {
				mlp(fmt.Sprintf("%smlp.experts.%d.", layer, e), n("moe_intermediate_size"))
			}
		case raw.ModelType != "phi3":
			mlp(layer+"mlp.", inner)
		}
	}
	return out
}
