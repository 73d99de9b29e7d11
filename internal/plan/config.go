package plan

import (
	"encoding/json"
	"slices"
	"strings"
)

// config is what a plan needs of config.json.
type config struct {
	raw           map[string]json.RawMessage
	text          map[string]json.RawMessage // the text model of a multimodal config; nil if there is none
	ModelType     string
	Architectures []string
	ClassName     string // diffusers' _class_name
	DType         string // "bfloat16", "float32", …; "" when the config does not say
}

// readConfig parses config.json; nil data gives an empty config.
func readConfig(data []byte) (*config, error) {
	c := &config{}
	if data == nil {
		return c, nil
	}
	if err := json.Unmarshal(lenientJSON(data), &c.raw); err != nil {
		return nil, refuse(ReasonConfig, "", "read config.json: %v", err)
	}
	for _, key := range []string{"text_config", "llm_config", "language_config", "thinker_config"} {
		if c.text = object(c.raw[key]); c.text != nil {
			break
		}
	}
	if inner := object(c.text["text_config"]); inner != nil { // thinker_config wraps once more
		c.text = inner
	}
	c.ModelType = str(c.raw["model_type"])
	c.ClassName = str(c.raw["_class_name"])
	c.Architectures = strs(c.raw["architectures"])
	for _, m := range []map[string]json.RawMessage{c.raw, c.text} {
		for _, key := range []string{"dtype", "torch_dtype"} {
			if c.DType == "" {
				c.DType = str(m[key])
			}
		}
	}
	return c, nil
}

// tied returns tie_word_embeddings: of the text model if it says so, else of the top level, which is the order in
// which transformers asks. nil means that the class decides.
func (c *config) tied() *bool {
	for _, m := range []map[string]json.RawMessage{c.text, c.raw} {
		var b *bool
		if json.Unmarshal(m["tie_word_embeddings"], &b) == nil && b != nil {
			return b
		}
	}
	return nil
}

// number returns the first of the keys that holds a number, looking into the text model first; -1 if none does.
func (c *config) number(keys ...string) int {
	for _, m := range []map[string]json.RawMessage{c.text, c.raw} {
		for _, key := range keys {
			var n *int
			if json.Unmarshal(m[key], &n) == nil && n != nil {
				return *n
			}
		}
	}
	return -1
}

// experts returns how many experts a layer with experts has; -1 if the config does not say.
func (c *config) experts() int {
	return c.number("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
}

// holds says whether a top-level member exists and is not null.
func (c *config) holds(key string) bool {
	v, ok := c.raw[key]
	return ok && string(v) != "null"
}

// hasArchitecture says whether the config names one of the classes.
func (c *config) hasArchitecture(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(c.Architectures, n) })
}

// hasHead says whether the config names a class with a language-model head.
func (c *config) hasHead() bool {
	return slices.ContainsFunc(c.Architectures, func(a string) bool {
		return strings.HasSuffix(a, "ForCausalLM") || strings.HasSuffix(a, "LMHeadModel") ||
			strings.HasSuffix(a, "ForConditionalGeneration")
	})
}

// object returns a JSON object's members, or nil.
func object(v json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(v, &m) != nil {
		return nil
	}
	return m
}

// str returns a JSON string, or "".
func str(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// strs returns a JSON list of strings, or nil.
func strs(v json.RawMessage) []string {
	var s []string
	if json.Unmarshal(v, &s) != nil {
		return nil
	}
	return s
}

// lenientJSON replaces the bare words NaN, Infinity and -Infinity, which Python's json writes and reads, by null.
func lenientJSON(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		n := jsonToken(data[i:])
		if word := string(data[i : i+n]); word == "NaN" || word == "Infinity" || word == "-Infinity" {
			out = append(out, "null"...)
		} else {
			out = append(out, data[i:i+n]...)
		}
		i += n
	}
	return out
}

// jsonToken returns the length of the string, bare word or single byte at the start of data.
func jsonToken(data []byte) int {
	if data[0] == '"' {
		return jsonString(data)
	}
	n := 0
	for n < len(data) && isWord(data[n]) {
		n++
	}
	return max(n, 1)
}

// jsonString returns the length of the string literal at the start of data; it ends with data if it is not closed.
func jsonString(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// isWord says whether c can be part of a bare word or a number.
func isWord(c byte) bool {
	return c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
