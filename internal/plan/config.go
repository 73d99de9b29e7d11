package plan

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/df11-convert/df11-convert/internal/python"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// config is what a plan needs of config.json.
type config struct {
	raw           members
	text          members // the text model of a multimodal config; nil if there is none
	ModelType     string
	Architectures []string
	ClassName     string // diffusers' _class_name
	DType         string // "bfloat16", "float32", …; "" when the config does not say
}

type members = map[string]json.RawMessage

// readObject reads a small JSON file that must hold an object. Without a path there is no file and
// no object.
func readObject(path string, data []byte) (members, error) {
	if path == "" {
		return nil, nil
	}
	err := python.Bounded(data, maxConfigItems, maxConfigItems)
	var list []python.Member
	if err == nil {
		list, _, err = python.Members(data)
	}
	if err != nil {
		return nil, refuse(unreadHint, "read %s: %v", path, err)
	}
	object := members{}
	for _, m := range list {
		object[m.Key] = m.Value
	}
	return object, nil
}

// readConfig parses the config.json at a path. Without a path the config is empty.
func readConfig(path string, data []byte) (*config, error) {
	c := &config{}
	var err error
	if c.raw, err = readObject(path, data); err != nil {
		return nil, err
	}
	for _, key := range []string{"text_config", "llm_config", "language_config", "thinker_config"} {
		if c.text = decode[members](c.raw[key]); c.text != nil {
			break
		}
	}
	// thinker_config wraps once more
	if inner := decode[members](c.text["text_config"]); inner != nil {
		c.text = inner
	}
	c.ModelType = decode[string](c.raw["model_type"])
	c.ClassName = decode[string](c.raw["_class_name"])
	c.Architectures = decode[[]string](c.raw["architectures"])
	for _, m := range []members{c.raw, c.text} {
		for _, key := range []string{"dtype", "torch_dtype"} {
			if c.DType == "" {
				c.DType = decode[string](m[key])
			}
		}
	}
	return c, nil
}

// lookUp returns the first of the keys that holds a T; nil if none does. The text model goes before
// the top level, as in transformers.
func lookUp[T any](c *config, keys ...string) *T {
	for _, m := range []members{c.text, c.raw} {
		for _, key := range keys {
			if v := decode[*T](m[key]); v != nil {
				return v
			}
		}
	}
	return nil
}

// number returns the first of the keys that holds a number; -1 if none does.
func (c *config) number(keys ...string) int {
	if n := lookUp[int](c, keys...); n != nil {
		return *n
	}
	return -1
}

// experts returns how many experts a layer with experts has; -1 if the config does not say.
func (c *config) experts() int {
	return c.number("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
}

// mainStacks are the paths of the language model's own layers.
var mainStacks = []string{"model.layers", "model.language_model.layers",
	"language_model.model.layers", "backbone.layers"}

// isExtraLayer says whether a module lies in a layer behind the last that the config counts: the
// model class does not build it.
func (c *config) isExtraLayer(module string) bool {
	n := c.number("num_hidden_layers")
	return n > 0 && slices.ContainsFunc(splitsOf(module+".x"), func(s splitPath) bool {
		return s.index >= n && slices.Contains(mainStacks, s.stack)
	})
}

// modelDType returns the type that the config states, else BF16.
func (c *config) modelDType() safetensors.DType {
	stated := map[string]safetensors.DType{"float32": safetensors.F32, "float16": "F16"}
	return cmp.Or(stated[c.DType], safetensors.BF16)
}

// holds says whether a top-level member exists and is not null.
func (c *config) holds(key string) bool {
	v, ok := c.raw[key]
	return ok && string(v) != "null"
}

// class returns the class that the config names first; "" if it names none.
func (c *config) class() string {
	if len(c.Architectures) > 0 {
		return c.Architectures[0]
	}
	return c.ClassName
}

// facts looks up the stated class. Code that comes with the model may define another class of that
// name: then only the reads are believed, which at worst keep a weight in BF16.
func (c *config) facts() facts {
	f := factsOf(c.class())
	if c.holds("auto_map") {
		return facts{reads: f.reads}
	}
	return f
}

// hasArchitecture says whether the config names one of the classes.
func (c *config) hasArchitecture(names []string) bool {
	return slices.ContainsFunc(names,
		func(n string) bool { return slices.Contains(c.Architectures, n) })
}

// headClass matches the names of classes with a language-model head.
var headClass = regexp.MustCompile(`(ForCausalLM|LMHeadModel|ForConditionalGeneration)$`)

// decode returns a JSON value as a T; the zero T if it is something else.
func decode[T any](v json.RawMessage) T {
	var x, zero T
	if python.Unmarshal(v, &x) != nil {
		return zero
	}
	return x
}
