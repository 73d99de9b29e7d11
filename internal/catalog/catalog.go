package catalog

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/df11-convert/df11-convert/internal/human"
)

//go:embed entries/*.json
var entryFiles embed.FS

// An Entry is one model class: how to recognize it, and what its units are. docs/models.md explains
// every field.
type Entry struct {
	ID       string `json:"id"`
	Layout   Layout `json:"layout"`
	Match    Match  `json:"match"`
	LikeOnly bool   `json:"like_only,omitempty"` // chosen by name only

	Refuse *RefusedError `json:"refuse,omitempty"` // why the class can't be converted; nil: it can
	Dicts
	Tied   *TiedNames `json:"tied,omitempty"`
	Loader Loader     `json:"loader"`
	Record
}

// Dicts says which modules of a class are units.
type Dicts struct {
	PatternDict PatternDict `json:"pattern_dict,omitempty"`
	// units of towers for images; a pattern counts if its modules have all their weights in BF16
	Towers PatternDict `json:"towers,omitempty"`
	// expand {e}, filter by presence, group block indices
	Template      bool     `json:"template,omitempty"`
	OptionalAttrs []string `json:"optional_attrs,omitempty"` // attributes that some blocks lack
	// paths of modules that stay in BF16, with * for any characters
	KeepBF16 []string `json:"keep_bf16,omitempty"`
}

// A Record says where an entry comes from. The files have more of it, for people (docs/models.md).
type Record struct {
	Provenance string   `json:"provenance"`
	DF11Repos  []string `json:"df11_repos,omitempty"`
}

// A Match says which sources an entry is for. Every list that isn't empty must hold.
type Match struct {
	ModelType     []string `json:"model_type,omitempty"`
	Architectures []string `json:"architectures,omitempty"`
	ClassName     []string `json:"class_name,omitempty"` // diffusers
	Markers       []string `json:"markers,omitempty"`    // tensors that must exist
	Absent        []string `json:"absent,omitempty"`     // tensors that must not exist
	// tensors that must exist with these dimensions, where 0 is any and -n any but n
	Shapes map[string][]int64 `json:"shapes,omitempty"`
	Tied   *bool              `json:"tied,omitempty"` // tie_word_embeddings must be this
}

// A Loader says how the official loader takes the model.
type Loader struct {
	// "AutoModelForCausalLM", "bfloat16_model=", or a ComfyUI node
	Via   string `json:"via"`
	Class string `json:"class,omitempty"` // class to build for bfloat16_model=
	// versions whose module tree has these paths, in pip's syntax; "" for all
	Transformers string `json:"transformers,omitempty"`
	Remark       string `json:"remark,omitempty"` // on these versions, for people
	// what the reader's author says is wrong with models of the class there, for people
	Caveat string `json:"caveat,omitempty"`
	// of the program, which the reader wants for the class, besides those for all
	Switches string `json:"switches,omitempty"`
	// the class comes with the model, so it's built only if its code is trusted
	RemoteCode bool `json:"remote_code,omitempty"`
}

// ViaClass is the Via of a model whose class the user builds.
const ViaClass = "bfloat16_model="

// TiedNames says which matrices a class shares.
type TiedNames struct {
	Head      string `json:"head,omitempty"`      // module path of the head
	Embedding string `json:"embedding,omitempty"` // module path of the token embedding
	// the class's tie_word_embeddings, for configs without it
	Default *bool `json:"default,omitempty"`
	// pairs: a tensor that isn't stored, and the tensor that holds its values
	Always [][2]string `json:"always,omitempty"`
}

// All lists the entries in the order of entries/*.json. Callers must not change them.
var All = sync.OnceValue(func() (list []*Entry) {
	files, _ := fs.Glob(entryFiles, "entries/*.json") // the pattern is right
	for _, name := range files {
		data, err := entryFiles.ReadFile(name)
		var family struct {
			Entries []*Entry `json:"entries"`
		}
		if err == nil {
			err = json.Unmarshal(data, &family)
		}
		if err != nil {
			// the files are part of the program
			panic(fmt.Sprintf("catalog: internal error: %s: %v", name, err))
		}
		list = append(list, family.Entries...)
	}
	return list
})

// Find returns the entry with an ID, or the entry that reproduces a DF11 repo. It returns nil if
// there is none.
func Find(like string) *Entry {
	for _, e := range All() {
		if e.ID == like || slices.ContainsFunc(e.DF11Repos,
			func(r string) bool { return strings.EqualFold(r, like) }) {
			return e
		}
	}
	return nil
}

// Near returns the IDs of up to five entries that begin like an unknown one, or like the model that
// it names, the closest first.
func Near(like string) (ids []string) {
	like = path.Base(like)
	if len(like) < 2 {
		return nil
	}
	for _, e := range All() {
		ids = append(ids, e.ID)
	}
	return human.Begun(like, ids)
}

// Score says how specifically an entry matches a source, by its config and its tensors; shape
// returns a tensor's dimensions. A marker counts more than an architecture, and an architecture
// more than the model type. 0 means that the entry doesn't fit.
func (e *Entry) Score(cfg *Config, shape func(tensor string) (dims []int64, ok bool)) int {
	m := &e.Match
	holds := func(tensor string) bool { _, ok := shape(tensor); return ok }
	isMissing := func(marker string) bool { return !holds(marker) }
	for tensor, want := range m.Shapes {
		dims, _ := shape(tensor)
		fits := func(n, want int64) bool { return n == want || want <= 0 && n != -want }
		if !slices.EqualFunc(dims, want, fits) {
			return 0
		}
	}
	if m.Tied != nil {
		if tied := e.TiedBy(cfg); tied == nil || *tied != *m.Tied {
			return 0
		}
	}
	if slices.ContainsFunc(m.Markers, isMissing) || slices.ContainsFunc(m.Absent,
		holds) {
		return 0
	}
	n := 4 * (len(m.Markers) + len(m.Absent) + len(m.Shapes))
	for _, c := range []struct {
		listed, stated []string
		points         int
	}{
		{m.ModelType, []string{cfg.ModelType}, 1},
		{m.ClassName, []string{cfg.ClassName}, 2},
		{m.Architectures, cfg.Architectures, 2},
	} {
		isListed := func(x string) bool { return slices.Contains(c.listed, x) }
		switch {
		case len(c.listed) == 0:
		case len(c.stated) == 0 || slices.ContainsFunc(c.stated, isListed):
			n += c.points
		default:
			return 0
		}
	}
	return n
}

// TiedBy reports whether embeddings are tied: as the config says, or else by the class's default.
// It returns nil if neither is known.
func (e *Entry) TiedBy(cfg *Config) *bool {
	if tied := LookUp[bool](cfg, "tie_word_embeddings"); tied != nil || e == nil || e.Tied == nil {
		return tied
	}
	return e.Tied.Default
}

// Keeps reports whether the catalog leaves a module in BF16. A nil entry keeps none.
func (e *Entry) Keeps(module string) bool {
	return e != nil && slices.ContainsFunc(e.KeepBF16, func(glob string) bool {
		ok, err := path.Match(glob, module)
		return ok && err == nil
	})
}

// Renames returns the rules that turn names in the class's checkpoints into module paths: starts of
// names, and what replaces them.
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
