package plan

import (
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
)

// TestWidthsOfParts checks that a config's inner width and heads are those of the text model, in a
// config with a vision tower: nested as in Llava, and flat as in the first Qwen2.5-VL.
func TestWidthsOfParts(t *testing.T) {
	const text = `"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2`
	const tower = `"vision_config": {"hidden_size": 24, "intermediate_size": 40, "num_heads": 3}`
	for name, config := range map[string]string{
		"nested":    `{"text_config": {` + text + `}, ` + tower + `}`,
		"flat":      `{` + text + `, ` + tower + `}`,
		"other key": `{` + text + `, "img_config": {"model_type": "tower", "intermediate_size": 40}}`,
	} {
		cfg, err := catalog.ReadConfig("config.json", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		for tensor, rows := range map[string]int64{
			"model.visual.blocks.0.mlp.gate_proj.weight":                   40,
			"vision_tower.vision_model.encoder.layers.0.q_proj.weight":     24,
			"model.language_model.layers.1.mlp.gate_proj.weight":           64,
			"model.language_model.layers.1.self_attn.q_proj.weight":        32,
			"model.language_model.layers.1.self_attn.v_proj.weight differ": 24,
			"model.layers.0.mlp.up_proj.weight differ":                     40,
		} {
			tensor, differ := strings.CutSuffix(tensor, " differ")
			why := otherRows(cfg, []Tensor{{Name: tensor, Shape: []int64{rows, 8}}})
			if (why != "") != differ {
				t.Errorf("%s: %s with %d rows: %q", name, tensor, rows, why)
			}
		}
	}
}
