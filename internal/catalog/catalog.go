package catalog

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed entries/*.json
var entryFiles embed.FS

// Entry is one model class: how to recognize it and what its units are. docs/models.md explains
// every field.
type Entry struct {
	ID       string `json:"id"`
	Layout   Layout `json:"layout"`
	Match    Match  `json:"match"`
	LikeOnly bool   `json:"like_only,omitempty"` // chosen by name only

	Refuse *Refusal `json:"refuse,omitempty"` // why the class cannot be converted, if that is known
	// the class is known, its dict is not: use the rule for unknown classes
	Derive bool `json:"derive,omitempty"`

	Dicts
	Tied   *TiedNames `json:"tied,omitempty"`
	Loader Loader     `json:"loader"`
	Record
}

// Dicts says which modules of a class are units.
type Dicts struct {
	PatternDict PatternDict `json:"pattern_dict,omitempty"`
	// expand {e}, filter by presence, group block indices
	Template      bool     `json:"template,omitempty"`
	OptionalAttrs []string `json:"optional_attrs,omitempty"` // attributes that some blocks lack
	// module paths that stay, with * for any characters
	KeepBF16 []string `json:"keep_bf16,omitempty"`
}

// Record says where an entry comes from and how it was checked.
type Record struct {
	Provenance    string   `json:"provenance"`
	FormatVersion string   `json:"format_version,omitempty"` // of the published repos
	DF11Repos     []string `json:"df11_repos,omitempty"`
	ExampleRepos  []string `json:"example_repos,omitempty"`
	Verification  string   `json:"verification,omitempty"`
	// nobody compared the names or their order with the class
	Unchecked bool   `json:"unchecked,omitempty"`
	Notes     string `json:"notes,omitempty"`
}

// Match says which sources an entry is for. Every list that is not empty must hold.
type Match struct {
	ModelType     []string `json:"model_type,omitempty"`
	Architectures []string `json:"architectures,omitempty"`
	ClassName     []string `json:"class_name,omitempty"` // diffusers
	// what the ComfyUI node calls it; not matched
	ComfyUIClass string   `json:"comfyui_class,omitempty"`
	Markers      []string `json:"markers,omitempty"` // tensors that must exist
	Absent       []string `json:"absent,omitempty"`  // tensors that must not exist
	Tied         *bool    `json:"tied,omitempty"`    // tie_word_embeddings must be this
}

// Loader says how the official loader takes the model.
type Loader struct {
	// "AutoModelForCausalLM", "bfloat16_model=", or a ComfyUI node
	Via   string `json:"via"`
	Class string `json:"class,omitempty"` // class to build for bfloat16_model=
	// versions whose module tree has these paths, as pip takes them; "" if all have
	Transformers string `json:"transformers,omitempty"`
	Remark       string `json:"remark,omitempty"` // on these versions, for people
	// the class comes with the model, and is built only if its code is trusted
	RemoteCode bool `json:"remote_code,omitempty"`
}

// ViaClass is the Via of a model whose class the user builds.
const ViaClass = "bfloat16_model="

// Refusal explains why a known class cannot be converted.
type Refusal struct {
	Why  string `json:"why"`
	Hint string `json:"hint,omitempty"`
}

// TiedNames says which matrices a class shares.
type TiedNames struct {
	Head      string `json:"head,omitempty"`      // module path of the head
	Embedding string `json:"embedding,omitempty"` // module path of the token embedding
	// tie_word_embeddings of the class when the config is silent
	Default *bool `json:"default,omitempty"`
	// tensor that is not stored, tensor that holds its values
	Always [][2]string `json:"always,omitempty"`
}

// All lists the models whose pattern dicts are known, in the order of entries/*.json. Callers must
// not change them.
var All = sync.OnceValue(func() []*Entry {
	var list []*Entry
	for _, family := range Families() {
		entries, err := ReadFamily(family)
		if err != nil {
			// the files are part of the program
			panic(fmt.Sprintf("catalog: internal error: %v", err))
		}
		list = append(list, entries...)
	}
	return list
})

// Families lists the families of the catalog, one for each of its files.
func Families() []string {
	names, _ := fs.Glob(entryFiles, "entries/*.json") // the pattern is right
	for i, name := range names {
		names[i] = strings.TrimSuffix(path.Base(name), ".json")
	}
	return names
}

// ReadFamily reads the entries of a family. Unknown fields are errors: they are typing mistakes.
func ReadFamily(name string) ([]*Entry, error) {
	data, err := entryFiles.ReadFile("entries/" + name + ".json")
	if err != nil {
		return nil, err
	}
	var family struct {
		Family  string   `json:"family"`
		Entries []*Entry `json:"entries"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err = dec.Decode(&family)
	return family.Entries, err
}

// Find returns the entry with an id, or the entry that reproduces a DF11 repo; nil if there is
// none.
func Find(like string) *Entry {
	for _, e := range All() {
		if e.ID == like || slices.ContainsFunc(e.DF11Repos,
			func(r string) bool { return strings.EqualFold(r, like) }) {
			return e
		}
	}
	return nil
}

// Score says how much an entry's match says about a source with a config, and with the tensors that
// holds reports: a marker more than an architecture, an architecture more than the model type. 0
// means that the entry does not fit.
func (e *Entry) Score(cfg *Config, holds func(tensor string) bool) int {
	m := &e.Match
	isMissing := func(marker string) bool { return !holds(marker) }
	tied := e.TiedBy(cfg)
	isTiedElse := m.Tied != nil && (tied == nil || *tied != *m.Tied)
	if isTiedElse || slices.ContainsFunc(m.Markers, isMissing) || slices.ContainsFunc(m.Absent,
		holds) {
		return 0
	}
	n := 4 * (len(m.Markers) + len(m.Absent))
	for _, c := range []struct {
		listed  []string
		matches bool
		points  int
	}{
		{m.ModelType, slices.Contains(m.ModelType, cfg.ModelType), 1},
		{m.ClassName, slices.Contains(m.ClassName, cfg.ClassName), 2},
		{m.Architectures, cfg.hasArchitecture(m.Architectures) || len(cfg.Architectures) == 0, 2},
	} {
		if len(c.listed) == 0 {
			continue
		}
		if !c.matches {
			return 0
		}
		n += c.points
	}
	return n
}

// TiedBy says whether embeddings are tied: as the config says, else as the class has it; nil if
// neither is known.
func (e *Entry) TiedBy(cfg *Config) *bool {
	if tied := LookUp[bool](cfg, "tie_word_embeddings"); tied != nil || e == nil || e.Tied == nil {
		return tied
	}
	return e.Tied.Default
}

// Keeps says whether the catalog leaves a module in BF16. A nil entry keeps none.
func (e *Entry) Keeps(module string) bool {
	return e != nil && slices.ContainsFunc(e.KeepBF16, func(glob string) bool {
		ok, err := path.Match(glob, module)
		return ok && err == nil
	})
}

// LikeHint says what --like takes instead of a word: the entries with a name like it, else
// the families.
func LikeHint(word string) string {
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' }
	stem := strings.ToLower(path.Base(word))
	if end := strings.IndexFunc(stem, func(r rune) bool { return !isLetter(r) }); end > 0 {
		stem = stem[:end]
	}
	var ids []string
	for _, e := range All() {
		isLike := strings.HasPrefix(e.ID, stem) || len(stem) > 2 && strings.Contains(e.ID, stem)
		if isLike && len(e.PatternDict) > 0 {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return "--like takes a catalog entry or a DF11 repo that one reproduces; families of entries: " + strings.Join(Families(), ", ")
	}
	return "--like takes one of these: " + strings.Join(ids, ", ")
}

// Renames returns what turns the names in the class's checkpoints into module paths: starts of
// names, and what they become.
func (e *Entry) Renames() [][2]string {
	if len(e.Match.Architectures) == 0 {
		return nil
	}
	return FactsOf(e.Match.Architectures[0]).Renames
}

// Blocks returns the patterns of the entry that match blocks, not single modules.
func (e *Entry) Blocks() PatternDict {
	return slices.DeleteFunc(slices.Clone(e.PatternDict),
		func(p Pattern) bool { return len(p.Attrs) == 0 })
}

// StatedClass returns the class that a config names if the catalog knows its module paths, since it
// cannot load other paths. Code that comes with the model (auto_map) may define another class of
// that name.
func (e *Entry) StatedClass(c *Config) string {
	switch {
	case c.Holds("auto_map"):
		return ""
	case c.ClassName != "" && slices.Contains(e.Match.ClassName, c.ClassName):
		return c.ClassName
	case c.hasArchitecture(e.Match.Architectures) && !strings.HasSuffix(c.Architectures[0],
		"Model"):
		return c.Architectures[0]
	}
	return ""
}
