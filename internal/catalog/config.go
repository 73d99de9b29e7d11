package catalog

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/python"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// A Config is what a plan needs of a config.json.
type Config struct {
	Raw           Members
	Text          Members // the text model of a multimodal config; nil if there is none
	ModelType     string
	Architectures []string
	ClassName     string // diffusers' _class_name
}

// Members are the members of a JSON object.
type Members = map[string]json.RawMessage

// ReadObject reads a small JSON file that must hold an object. Without a path it returns nil.
func ReadObject(path string, data []byte) (Members, error) {
	if path == "" {
		return nil, nil
	}
	err := python.Bounded(data, maxItems, maxItems)
	var list []python.Member
	if err == nil {
		list, _, err = python.Members(data)
	}
	if err != nil {
		return nil, Refuse(hint.Unread, "read %s: %v", path, err)
	}
	object := Members{}
	for _, m := range list {
		object[m.Key] = m.Value
	}
	return object, nil
}

// ReadConfig parses the config.json at a path. Without a path the config is empty.
func ReadConfig(path string, data []byte) (*Config, error) {
	c := &Config{}
	var err error
	if c.Raw, err = ReadObject(path, data); err != nil {
		return nil, err
	}
	for _, key := range []string{"text_config", "llm_config", "language_config", "thinker_config"} {
		if c.Text = Decode[Members](c.Raw[key]); c.Text != nil {
			break
		}
	}
	// thinker_config has a text_config inside
	if inner := Decode[Members](c.Text["text_config"]); inner != nil {
		c.Text = inner
	}
	c.ModelType = Decode[string](c.Raw["model_type"])
	c.ClassName = Decode[string](c.Raw["_class_name"])
	c.Architectures = Decode[[]string](c.Raw["architectures"])
	return c, nil
}

// LookUp returns the value of the first key that holds a T, or nil. It looks in the text model
// before the top level, as transformers does.
func LookUp[T any](c *Config, keys ...string) *T {
	for _, m := range []Members{c.Text, c.Raw} {
		for _, key := range keys {
			if v := Decode[*T](m[key]); v != nil {
				return v
			}
		}
	}
	return nil
}

// Number returns the value of the first key that holds a number, or -1.
func (c *Config) Number(keys ...string) int {
	if n := LookUp[int](c, keys...); n != nil {
		return *n
	}
	return -1
}

// isTrue reports whether Python takes a member for true: a switch that is on, a number other than
// 0, or a text or list that isn't empty. known is false if the config lacks it, because a class may
// have any default.
func (c *Config) isTrue(key string) (known, is bool) {
	for _, of := range []Members{c.Text, c.Raw} {
		if v, ok := of[key]; ok {
			return true, Decode[bool](v) || Decode[float64](v) != 0 || Decode[string](v) != "" ||
				len(Decode[[]json.RawMessage](v)) > 0
		}
	}
	return false, false
}

// maxNumbers bounds the numbers of NumbersOf: real configs have one for each layer at most.
const maxNumbers = 500

// NumbersOf returns the numbers of all members whose names hold one of these words, and those of lists
// of numbers, each once. If there are more than 500, it returns only -1, which no shape has.
func (c *Config) NumbersOf(words ...string) (numbers []int) {
	for _, of := range []Members{c.Text, c.Raw} {
		for key, v := range of {
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(key, w) }) {
				numbers = append(numbers, Decode[int](v))
				numbers = append(numbers, Decode[[]int](v)...)
			}
		}
	}
	slices.Sort(numbers)
	if numbers = slices.Compact(numbers); len(numbers) > maxNumbers {
		return []int{-1}
	}
	return numbers
}

// Experts returns how many experts a layer with experts has, or -1 if the config doesn't say.
func (c *Config) Experts() int {
	return c.Number("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
}

// HasParts reports whether the config holds configs of more than one model, such as those of a text
// model and a vision tower. A number of one part says nothing of another.
func (c *Config) HasParts() bool {
	for key, v := range c.Raw {
		if strings.HasSuffix(key, "_config") && Decode[Members](v)["model_type"] != nil {
			return true
		}
	}
	return c.Text != nil || c.Holds("vision_config") || c.Holds("audio_config")
}

// MainStacks are the paths of the language model's own layers.
var MainStacks = []string{"model.layers", "model.language_model.layers",
	"language_model.model.layers", "backbone.layers"}

// IsExtraLayer reports whether a module lies in a layer after the last that the config counts. The
// model class doesn't build such layers.
func (c *Config) IsExtraLayer(module string) bool {
	n := c.Number("num_hidden_layers")
	s, ok := mainSplit(module)
	return ok && n > 0 && s.Index >= n
}

// InMainStack reports whether a module is, or lies in, one of the language model's own layers.
func InMainStack(module string) bool {
	_, ok := mainSplit(module)
	return ok
}

// mainSplit reads a module's path as one in a main stack, if it is in one.
func mainSplit(module string) (s Split, ok bool) {
	for _, s = range Splits(module + ".x") {
		if slices.Contains(MainStacks, s.Stack) {
			return s, true
		}
	}
	return Split{}, false
}

// ModelDType returns the type that the config states, or else BF16.
func (c *Config) ModelDType() safetensors.DType {
	switch c.statedDType() {
	case "float32":
		return safetensors.F32
	case "float16":
		return "F16"
	}
	return safetensors.BF16
}

// AsksForBF16 reports whether the config states that the model runs in BF16.
func (c *Config) AsksForBF16() bool { return c.statedDType() == "bfloat16" }

// statedDType returns the type that the config states, as PyTorch calls it, or "".
func (c *Config) statedDType() string {
	if stated := LookUp[string](c, "dtype", "torch_dtype"); stated != nil {
		return strings.TrimPrefix(*stated, "torch.")
	}
	return ""
}

// Holds reports whether a top-level member exists and isn't null.
func (c *Config) Holds(key string) bool {
	v, ok := c.Raw[key]
	return ok && string(v) != "null"
}

// Class returns the first class that the config names, or else the class that the library makes of
// its model type, or else that of the text model, where transformers 4.57 writes it. It returns ""
// if none is known.
func (c *Config) Class() string {
	if len(c.Architectures) > 0 {
		return c.Architectures[0]
	}
	return cmp.Or(c.ClassName, libraryClass(c.ModelType),
		append(Decode[[]string](c.Text["architectures"]), "")[0])
}

// Facts looks up the stated class. If the tables don't list it, Facts looks up the class that the
// library makes of the model type, because an auto class builds that one. Code that comes with the
// model may define another class of the same name. Then Facts returns only the reads, which at
// worst keep a weight in BF16.
func (c *Config) Facts() Facts {
	class := c.Class()
	if c.Holds("auto_map") {
		return Facts{Reads: FactsOf(class).Reads}
	}
	if !isListed(class) {
		class = libraryClass(c.ModelType)
	}
	return FactsOf(class)
}

// Built returns the facts of the class that AutoModelForCausalLM builds of the model type, if the
// config states another ForCausalLM; else nil. An auto class ignores what the config states.
func (c *Config) Built() *Facts {
	class := libraryClass(c.ModelType)
	if class == "" || class == c.Class() || !strings.HasSuffix(c.Class(), "ForCausalLM") ||
		c.Holds("auto_map") {
		return nil
	}
	f := FactsOf(class)
	return &f
}

// OwnClass returns the auto class that builds the class of the model's own code: the one whose value
// in auto_map names the architecture, or else the first that builds a model. It returns "" without
// own code.
func (c *Config) OwnClass() string {
	var first string
	members, _, _ := python.Members(c.Raw["auto_map"]) // none if it isn't an object
	for _, m := range members {
		isModel := strings.HasPrefix(m.Key, "AutoModel")
		if isModel && strings.HasSuffix(Decode[string](m.Value), "."+c.Class()) {
			return m.Key
		}
		if isModel {
			first = cmp.Or(first, m.Key)
		}
	}
	return first
}

// Code returns the repos of the Hub whose code libraries run, because an auto_map names it, here or
// in a part of the config, and the files of the model's own modules that have its config and its
// class. Tokenizers and other tasks have theirs, which the model doesn't need. Each list is sorted.
func (c *Config) Code() (repos, files []string) {
	var walk func(value any, mapped bool) // mapped: in an auto_map
	walk = func(value any, mapped bool) {
		switch v := value.(type) {
		case map[string]any:
			for key, x := range v {
				walk(x, mapped || key == "auto_map")
			}
		case []any:
			for _, x := range v {
				walk(x, mapped)
			}
		case string:
			if repo, _, ok := strings.Cut(v, "--"); ok && mapped {
				repos = append(repos, repo)
			}
		}
	}
	for key, raw := range c.Raw {
		walk(Decode[any](raw), key == "auto_map")
	}
	autoMap := Decode[map[string]any](c.Raw["auto_map"])
	for _, key := range []string{"AutoConfig", c.OwnClass()} {
		class, _ := autoMap[key].(string)
		if module, _, ok := strings.Cut(class, "."); ok && !strings.Contains(class, "--") {
			files = append(files, module+".py")
		}
	}
	slices.Sort(repos)
	slices.Sort(files)
	return slices.Compact(repos), slices.Compact(files)
}

// HasHead reports whether a class that the config names has a language-model head.
func (c *Config) HasHead() bool {
	return slices.ContainsFunc(append(c.Architectures, c.Class()), headClass.MatchString)
}

// GuessLoader says how to load a model whose class the catalog doesn't know.
func (c *Config) GuessLoader() Loader {
	class := c.Class()
	if strings.HasSuffix(class, "ForCausalLM") {
		return Loader{Via: "AutoModelForCausalLM"}
	}
	return Loader{Via: ViaClass, Class: class}
}

// headClass matches the names of classes with a language-model head.
var headClass = regexp.MustCompile(`(ForCausalLM|LMHeadModel|ForConditionalGeneration)$`)

// Decode returns a JSON value as a T, or the zero T if it's something else.
func Decode[T any](v json.RawMessage) T {
	var x, zero T
	if python.Unmarshal(v, &x) != nil {
		return zero
	}
	return x
}
