package plan

import (
	"encoding/json"
	"regexp"
	"strings"
)

// fp8Hint names the relative of DF11 for FP8 weights.
const fp8Hint = "DF11 holds BF16 only; for FP8 weights use ECF8 of the same authors, or start from a BF16 release"

// quantHints says, per quantization method, what to use instead.
var quantHints = map[string]string{
	"fp8":             fp8Hint,
	"fbgemm_fp8":      fp8Hint,
	"finegrained_fp8": fp8Hint,
	"mxfp4":           "DF11 holds BF16 only; start from a BF16 release, MXFP4 weights leave nothing to gain",
}

// otherQuantHint is for every other method: GPTQ, AWQ, bitsandbytes, compressed-tensors, ….
const otherQuantHint = "quantized weights are smaller than DF11 already; start from the BF16 original of the model"

// refuseForeignFormats refuses sources whose config says that the weights are not plain BF16.
func (p *planner) refuseForeignFormats() error {
	for _, key := range []string{"dfloat11_config", "dfloat11_version"} {
		if p.cfg.holds(key) {
			return refuse(ReasonAlreadyDF11, "use verify to prove it, or decode to get the BF16 files back",
				"the source is a DF11 model already (config.json has %s)", key)
		}
	}
	for _, key := range []string{"quantization_config", "compression_config"} {
		if p.cfg.holds(key) {
			return refuseQuantized(key, p.cfg.raw[key])
		}
		if v, ok := p.cfg.text[key]; ok && string(v) != "null" {
			return refuseQuantized(key, v)
		}
	}
	return nil
}

// refuseQuantized names the method that a quantization config states.
func refuseQuantized(key string, v json.RawMessage) error {
	method := str(object(v)["quant_method"])
	if method == "" {
		method = "unknown"
	}
	hint, ok := quantHints[strings.ToLower(method)]
	if !ok {
		hint = otherQuantHint
	}
	return refuse(ReasonQuantized, hint, "the source is quantized (%s in %s), not BF16", method, key)
}

// packedMarks are last name components that only packed or quantized checkpoints have.
var packedMarks = map[string]string{
	"qweight":             "GPTQ or AWQ",
	"qzeros":              "GPTQ or AWQ",
	"weight_packed":       "compressed-tensors",
	"weight_scale_inv":    "block FP8",
	"SCB":                 "bitsandbytes",
	"quant_state":         "bitsandbytes",
	"absmax":              "bitsandbytes",
	"gate_up_proj_blocks": "MXFP4",
	"down_proj_blocks":    "MXFP4",
	"bitsandbytes__nf4":   "bitsandbytes",
	"bitsandbytes__fp4":   "bitsandbytes",
	"encoded_exponent":    "DF11",
	"comfy_quant":         "ComfyUI quantization",
	"scaled_fp8":          "scaled FP8",
	"scale_weight":        "scaled FP8",
	"weight_scale":        "scaled FP8",
}

// refuseForeignTensors refuses sources whose tensor names show packed or quantized weights, with no config to say so.
func (p *planner) refuseForeignTensors() error {
	for _, t := range p.inv.tensors {
		what, ok := packedMarks[t.Name[strings.LastIndexByte(t.Name, '.')+1:]]
		switch {
		case !ok:
		case what == "DF11":
			return refuse(ReasonAlreadyDF11, "use verify to prove it, or decode to get the BF16 files back",
				"the source holds DF11 tensors already (%s)", t.Name)
		case strings.Contains(what, "FP8"):
			return refuse(ReasonQuantized, fp8Hint, "the source is quantized (%s: %s), not BF16", what, t.Name)
		default:
			return refuse(ReasonQuantized, otherQuantHint, "the source is quantized (%s: %s), not BF16", what, t.Name)
		}
	}
	return nil
}

// adapterMark recognises the names of LoRA and similar adapters: lora_A of PEFT, lora_up of kohya, lora.up of diffusers.
var adapterMark = regexp.MustCompile(`(^|[._])(lora_(A|B|up|down|mid|embedding_A|embedding_B|te\w*|unet)|lora\.(up|down)|hada_w[12]_[ab]|lokr_w[12])([._]|$)`)

// refuseAdapter refuses a source most of whose tensors are an adapter's.
func (p *planner) refuseAdapter() error {
	var names []string
	for _, t := range p.inv.tensors {
		if adapterMark.MatchString(t.Name) {
			names = append(names, t.Name)
		}
	}
	if 2*len(names) <= len(p.inv.tensors) {
		return nil
	}
	return refuse(ReasonNoWeights, adapterHint, "the source is a LoRA adapter, not a model (%s)", sample(names))
}
