package budget

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// shapes are real models with their names and shapes, in files of at most shard bytes.
var shapes = []struct {
	name, config string
	shard        int64
	tensors      []safetensors.Entry
}{
	{"SmolLM2-135M", `"llama","tie_word_embeddings":true`, 1 << 50, decoder(30, 576, 1536, 49152, 192, 576, 0)},
	{"Qwen3-0.6B", `"qwen3","tie_word_embeddings":true`, 1 << 50, decoder(28, 1024, 3072, 151936, 1024, 2048, 0)},
	{"gemma-2-27b", `"gemma2","tie_word_embeddings":true`, 5e9, decoder(46, 4608, 36864, 256000, 2048, 4096, 0)},
	{"Llama-3.1-8B", `"llama"`, 5e9, withHead(decoder(32, 4096, 14336, 128256, 1024, 4096, 0))},
	{"Llama-3.1-70B", `"llama"`, 5e9, withHead(decoder(80, 8192, 28672, 128256, 1024, 8192, 0))},
	{"Llama-3.1-405B", `"llama"`, 4.8e9, withHead(decoder(126, 16384, 53248, 128256, 1024, 16384, 0))},
	{"Qwen3-30B-A3B", `"qwen3_moe","num_experts":128`, 4e9, withHead(decoder(48, 2048, 768, 151936, 512, 4096, 128))},
	{"FLUX.1-dev, one file", "", 1 << 50, flux()},
}

func tensor(name string, shape ...int64) safetensors.Entry {
	return safetensors.Entry{Name: name, DType: safetensors.BF16, Shape: shape}
}

// decoder lists the tensors of a language model with tied embeddings in its order.
func decoder(layers int, hidden, ffn, vocab, kv, q int64, experts int) []safetensors.Entry {
	list := []safetensors.Entry{tensor("model.embed_tokens.weight", vocab, hidden)}
	for i := range layers {
		l := fmt.Sprintf("model.layers.%d.", i)
		list = append(list,
			tensor(l+"self_attn.q_proj.weight", q, hidden), tensor(l+"self_attn.k_proj.weight", kv, hidden),
			tensor(l+"self_attn.v_proj.weight", kv, hidden), tensor(l+"self_attn.o_proj.weight", hidden, q))
		for e := range max(1, experts) {
			mlp := l + "mlp."
			if experts > 0 {
				mlp += fmt.Sprintf("experts.%d.", e)
			}
			list = append(list, tensor(mlp+"gate_proj.weight", ffn, hidden),
				tensor(mlp+"up_proj.weight", ffn, hidden), tensor(mlp+"down_proj.weight", hidden, ffn))
		}
		list = append(list, tensor(l+"input_layernorm.weight", hidden))
	}
	return list
}

// withHead adds an output head of the embedding's shape.
func withHead(list []safetensors.Entry) []safetensors.Entry {
	return append(list, tensor("lm_head.weight", list[0].Shape...))
}

// flux lists the tensors of FLUX.1-dev as ComfyUI has them.
func flux() (list []safetensors.Entry) {
	const h = 3072
	list = append(list, tensor("guidance_in.in_layer.weight", h, 256), tensor("txt_in.weight", h, 4096))
	for i := range 19 {
		for _, s := range []string{"img", "txt"} {
			b := fmt.Sprintf("double_blocks.%d.%s_", i, s)
			list = append(list, tensor(b+"mod.lin.weight", 6*h, h), tensor(b+"attn.qkv.weight", 3*h, h),
				tensor(b+"attn.proj.weight", h, h), tensor(b+"mlp.0.weight", 4*h, h), tensor(b+"mlp.2.weight", h, 4*h))
		}
	}
	for i := range 38 {
		b := fmt.Sprintf("single_blocks.%d.", i)
		list = append(list, tensor(b+"linear1.weight", 7*h, h), tensor(b+"linear2.weight", h, 5*h),
			tensor(b+"modulation.lin.weight", 3*h, h))
	}
	return list
}

// source distributes tensors over files as a Hub has them: sorted by name within a file, and no
// file above a size.
func source(t *testing.T, config string, shard int64, list []safetensors.Entry) plan.Source {
	t.Helper()
	src := plan.Source{ID: "org/model", Commit: "0123456789012345678901234567890123456789"}
	path, index := "model-%d.safetensors", map[string]map[string]string{"weight_map": {}}
	if config == "" {
		path = "flux1-dev%.0d.safetensors"
	} else {
		src.Config = []byte(`{"model_type":` + config + `}`)
		src.Files = []plan.File{{Path: "config.json", Size: 1}, {Path: "model.safetensors.index.json", Size: 1}}
	}
	for n := 0; len(list) > 0; n++ {
		end, size := 0, int64(0)
		for ; end < len(list) && (end == 0 || size < shard); end++ {
			if size += bytesOf(list[end]); size > shard {
				break
			}
			index["weight_map"][list[end].Name] = fmt.Sprintf(path, n)
		}
		h, err := safetensors.NewHeader(nil, list[:end])
		if err != nil {
			t.Fatal(err)
		}
		f := plan.File{Path: fmt.Sprintf(path, n), Size: h.Size()}
		src.Files, src.Weights = append(src.Files, f), append(src.Weights, plan.WeightFile{File: f, Header: h})
		list = list[end:]
	}
	if config != "" {
		src.Index, _ = json.Marshal(index)
	}
	return src
}

func bytesOf(e safetensors.Entry) int64 {
	n := int64(2)
	for _, d := range e.Shape {
		n *= d
	}
	return n
}

// TestWhatAKillCosts computes how much the next run fetches again after a kill, as a share of the
// model, with and without spools that outlive the process. A slow connection has one complete
// output that doesn't have its name yet; a fast one has as many as the stages hold. A kept spool is
// lost with none of them. Without kept spools, a layout of one file would lose everything.
func TestWhatAKillCosts(t *testing.T) {
	for _, m := range shapes {
		p, err := plan.New(t.Context(), source(t, m.config, m.shard, m.tensors), plan.Options{})
		if err != nil {
			t.Fatal(m.name, err)
		}
		outputs := world.Got(spans.Outputs(p))(t)
		segments := spans.Segments(outputs, len(p.Source().Weights))
		shares, err := NewDemand(outputs, segments, false, true, defaultSpools).Divide(0)
		if err != nil {
			t.Fatal(m.name, err)
		}
		row := fmt.Sprintf("| %s | %.1f | %d |", m.name, float64(spans.ProvedBytes(outputs))/1e9, len(outputs))
		for _, ahead := range []int{1, fullSpools} {
			mean, worst := killCost(segments, ahead, func(*spans.Output, int) bool { return true })
			keptMean, keptWorst := killCost(segments, ahead, func(o *spans.Output, _ int) bool { return shares.InMemory[o] })
			row += fmt.Sprintf(" %.1f, %.1f | %.1f, %.1f |", mean, worst, keptMean, keptWorst)
			if single := len(outputs) == 1; single != (worst > 99) || keptWorst > worst || single && keptWorst > 1 {
				t.Errorf("%s: %.1f%% without kept spools, %.1f%% with them", m.name, worst, keptWorst)
			}
		}
		t.Log(row)
	}
}

// killCost returns the mean and the maximum, in percent of the model, of what a kill just before
// the end of a tensor loses: that tensor, and the lost ones among open spools (age -1) and among
// complete outputs without a name yet (the newest has age 0).
func killCost(segments [][]spans.Segment, ahead int, lost func(o *spans.Output, age int) bool) (mean, worst float64) {
	open, complete := map[*spans.Output]int64{}, []*spans.Output(nil)
	var total, sum, most float64
	for _, s := range slices.Concat(segments...) {
		d := s.To[0]
		n := d.SpoolBytes()
		cost := n
		for o, arrived := range open {
			if lost(o, -1) {
				cost += arrived
			}
		}
		for age, o := range slices.Backward(complete) {
			if age = len(complete) - 1 - age; age < ahead && lost(o, age) {
				cost += o.Size
			}
		}
		total, sum, most = total+float64(n), sum+float64(n)*(float64(cost)-float64(n)/2), max(most, float64(cost))
		if open[d.Output] += n; open[d.Output] == d.Output.Size {
			delete(open, d.Output)
			complete = append(complete, d.Output)
		}
	}
	return 100 * sum / total / total, 100 * most / total
}
