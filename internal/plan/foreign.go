package plan

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Hints for sources that aren't BF16.
const (
	df11Hint = "check it with: df11-convert verify; get the BF16 files back with: df11-convert decode"
	fp8Hint  = "DF11 holds BF16 only; for FP8 weights use ECF8 of the same authors, or start from a BF16 release"

	// otherQuantHint is for GPTQ, AWQ, bitsandbytes, compressed-tensors, MXFP4, ….
	otherQuantHint = "quantized weights are already smaller than DF11; start from the BF16 original of the model"
)

// quantHint says what to use instead of weights in a quantized format.
func quantHint(format string) string {
	if strings.Contains(strings.ToUpper(format), "FP8") {
		return fp8Hint
	}
	return otherQuantHint
}

// refuseForeign refuses a source whose config says that the weights are quantized, unless isPlain
// says that none is: a merge of a quantized model may have kept its config. It also refuses a
// pipeline if its root config says that another folder is DF11 already. The units of that one lie at
// the root, where a second DF11 model would put its own.
func refuseForeign(c *catalog.Config, root catalog.Members, isPlain bool) error {
	for _, key := range []string{"dfloat11_config", "dfloat11_version"} {
		_, isModel := c.Raw[key] // also if it's null: config.json can't have the member twice
		if _, ok := root[key]; ok || isModel {
			return refuseDF11("the source is a DF11 model already (config.json has " + key + ")")
		}
	}
	if method, key := statedQuant(c); method != "" && !isPlain {
		return refuse(quantHint(method), "the source is quantized (%s in %s), not BF16", method,
			key)
	}
	return nil
}

// statedQuant returns the format in which a config says that weights are quantized, and the key
// that says so. It returns "" if none does.
func statedQuant(c *catalog.Config) (method, key string) {
	for _, key := range []string{"quantization_config", "compression_config"} {
		for _, m := range []catalog.Members{c.Raw, c.Text} {
			if v, ok := m[key]; ok && string(v) != "null" {
				return cmp.Or(
					catalog.Decode[string](catalog.Decode[catalog.Members](v)["quant_method"]),
					"unknown"), key
			}
		}
	}
	return "", ""
}

// packedMarks maps last name components that only packed or quantized checkpoints have to the
// format.
var packedMarks = map[string]string{
	"qweight":                   "GPTQ or AWQ",
	"qzeros":                    "GPTQ or AWQ",
	"weight_packed":             "compressed-tensors",
	"weight_scale_inv":          "block FP8",
	"SCB":                       "bitsandbytes",
	"quant_state":               "bitsandbytes",
	"absmax":                    "bitsandbytes",
	"gate_up_proj_blocks":       "MXFP4",
	"down_proj_blocks":          "MXFP4",
	"bitsandbytes__nf4":         "bitsandbytes",
	"bitsandbytes__fp4":         "bitsandbytes",
	encoder.NameEncodedExponent: "DF11",
	"comfy_quant":               "ComfyUI quantization",
	"scaled_fp8":                "scaled FP8",
	"scale_weight":              "scaled FP8",
	"weight_scale":              "scaled FP8",
}

// adapterMark matches tensors of LoRA and similar adapters: lora_A of PEFT, lora_up of kohya,
// lora.up of diffusers.
var adapterMark = regexp.MustCompile(
	`(^|[._])(lora_(A|B|up|down|mid|embedding_A|embedding_B|te\w*|unet)|lora\.(up|down)|` +
		`hada_w[12]_[ab]|lokr_w[12])([._]|$)`)

// refuseByNames refuses a source whose tensor names show packed or quantized weights, since a
// config may not say so. It also refuses a source that consists mostly of an adapter's tensors.
func refuseByNames(tensors []Tensor) error {
	var adapter []string
	for _, t := range tensors {
		if adapterMark.MatchString(t.Name) {
			adapter = append(adapter, t.Name)
		}
		switch format := packedMarks[catalog.Leaf(t.Name)]; format {
		case "":
		case "DF11":
			return refuseDF11("the source holds DF11 tensors already (" + t.Name + ")")
		default:
			return refuse(quantHint(format), "the source is quantized (%s: %s), not BF16", format,
				t.Name)
		}
	}
	if 2*len(adapter) > len(tensors) {
		return refuse(adapterHint, "the source is a LoRA adapter, not a model (%s)",
			human.List(adapter))
	}
	return nil
}

// dtypeHints says what to use instead of weights that aren't BF16.
var dtypeHints = map[safetensors.DType]string{
	"F32": "if this is a BF16 model saved as F32, add --exact-f32, which checks every value; " +
		"otherwise keep F32: a cast to BF16 loses bits",
	"F16": "DF11 holds BF16 only and a cast loses bits; keep F16, or use ZipNN, which is lossless for it",
}

// refuseDType refuses a weight that isn't BF16, and counts the tensors of its type.
func (inv *inventory) refuseDType(t Tensor) error {
	hint := dtypeHints[t.DType]
	switch {
	case strings.HasPrefix(string(t.DType), "F8"):
		hint = fp8Hint
	case !isFloat(t.DType), isSmallFloat(t.DType):
		hint = otherQuantHint
	}
	var n int
	var elems int64
	for _, other := range inv.tensors {
		if other.DType == t.DType {
			n++
			elems += other.NElems()
		}
	}
	return refuse(hint, "%s is %s, not BF16 (%s, %d values in all)", t.Name, t.DType,
		count(n, string(t.DType)+" tensor"), elems)
}

func isFloat(d safetensors.DType) bool {
	return strings.HasPrefix(string(d), "F") || d == safetensors.BF16
}

// isSmallFloat reports whether a type has less than 16 bits, as only quantized weights have.
func isSmallFloat(d safetensors.DType) bool {
	return strings.HasPrefix(string(d), "F4") || strings.HasPrefix(string(d), "F6") ||
		strings.HasPrefix(string(d), "F8")
}
