package plan

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// refuseForeign refuses a source whose config says that the weights are quantized, unless isPlain
// says that none is: a merge of a quantized model may have kept its config. It also refuses a
// pipeline if its root config says that another folder is DF11 already. That model's units lie at
// the root, where a second DF11 model would put its own.
func refuseForeign(c *catalog.Config, root catalog.Members, isPlain bool) error {
	for _, key := range []string{"dfloat11_config", "dfloat11_version"} {
		_, isModel := c.Raw[key] // also if it's null: config.json can't have the member twice
		if _, ok := root[key]; ok || isModel {
			return refuseDF11("the source is a DF11 model already (config.json has " + key + ")")
		}
	}
	if key := statedQuant(c); key != "" && !isPlain {
		return refuse(hint.Quantized, "the source is quantized (config.json has %s), not BF16", key)
	}
	return nil
}

// statedQuant returns the member of a config that says that weights are quantized, or "".
func statedQuant(c *catalog.Config) string {
	for _, key := range []string{"quantization_config", "compression_config"} {
		if catalog.LookUp[catalog.Members](c, key) != nil {
			return key
		}
	}
	return ""
}

// packedMark matches last name components that only packed or quantized checkpoints have: those of
// GPTQ, AWQ, compressed-tensors, FP8, bitsandbytes, MXFP4, and ComfyUI.
var packedMark = regexp.MustCompile(
	`^(qweight|qzeros|weight_packed|weight_scale|weight_scale_inv|scale_weight|scaled_fp8|SCB|` +
		`quant_state|absmax|bitsandbytes__nf4|bitsandbytes__fp4|gate_up_proj_blocks|` +
		`down_proj_blocks|comfy_quant)$`)

// adapterMark matches tensors of LoRA and similar adapters: lora_A of PEFT, lora_up of kohya,
// lora.up of diffusers.
var adapterMark = regexp.MustCompile(
	`(^|[._])(lora_(A|B|up|down|mid|embedding_A|embedding_B|te\w*|unet)|lora\.(up|down)|` +
		`hada_w[12]_[ab]|lokr_w[12])([._]|$)`)

// refuseByNames refuses a source whose tensor names show DF11, packed, or quantized weights, since a
// config may not say so. It also refuses a source that consists mostly of an adapter's tensors.
func refuseByNames(tensors []Tensor) error {
	nAdapter := 0
	for _, t := range tensors {
		leaf := catalog.Leaf(t.Name)
		switch {
		case encoder.IsArrayName(leaf):
			return refuseDF11("the source holds a DF11 tensor already (" + t.Name + ")")
		case packedMark.MatchString(leaf):
			return refuse(hint.Quantized, "the source is quantized (it holds %s), not BF16", t.Name)
		case adapterMark.MatchString(t.Name):
			nAdapter++
		}
	}
	if 2*nAdapter > len(tensors) {
		return refuse(hint.Adapter, "the source is a LoRA adapter, not a model")
	}
	return nil
}

// dtypeHints says what to use instead of weights that aren't BF16. The types without a hint are
// those of quantized weights.
var dtypeHints = map[safetensors.DType]hint.Hint{"F32": hint.IsF32, "F16": hint.IsF16, "F64": hint.IsF64}

// refuseDType refuses a weight that isn't BF16. It says how many tensors are like it, because one may
// be a slip, and all of them another model.
func (inv *inventory) refuseDType(t Tensor) error {
	r := &RefusedError{Hint: cmp.Or(dtypeHints[t.DType], hint.Quantized),
		Detail: fmt.Sprintf("%s is %s, not BF16", t.Name, t.DType), Tensor: t.Name}
	n, weights := 0, int64(0)
	for _, other := range inv.tensors {
		if other.DType == t.DType {
			n, weights = n+1, weights+other.NElems()
		}
	}
	if n > 1 {
		r.Detail += fmt.Sprintf(" (%d of %d tensors are %s, with %s values)", n, len(inv.tensors), t.DType,
			human.Grouped(weights))
	}
	if t.DType == safetensors.F32 {
		r.Next = "exact_f32"
	}
	return r
}

// isPlainFloat reports whether a type is one of floating-point numbers that aren't quantized.
func isPlainFloat(d safetensors.DType) bool {
	return d == safetensors.BF16 || dtypeHints[d] != hint.Hint{}
}
