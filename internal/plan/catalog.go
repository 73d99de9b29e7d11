package plan

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

//go:embed catalog/*.json
var catalogFiles embed.FS

// Entry is one model class: how to recognize it and what its units are. docs/models.md explains
// every field.
type Entry struct {
	ID       string `json:"id"`
	Layout   Layout `json:"layout"`
	Match    Match  `json:"match"`
	LikeOnly bool   `json:"like_only,omitempty"` // chosen by Options.Like only

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

// Catalog lists the models whose pattern dicts are known, in the order of catalog/*.json. Callers
// must not change them.
var Catalog = sync.OnceValue(func() []*Entry {
	var list []*Entry
	for _, family := range families() {
		entries, err := readFamily(family)
		if err != nil {
			// the files are part of the program
			panic(fmt.Sprintf("plan: internal error: catalog: %v", err))
		}
		list = append(list, entries...)
	}
	return list
})

// families lists the families of the catalog, one for each of its files.
func families() []string {
	names, _ := fs.Glob(catalogFiles, "catalog/*.json") // the pattern is right
	for i, name := range names {
		names[i] = strings.TrimSuffix(path.Base(name), ".json")
	}
	return names
}

// readFamily reads the entries of a family. Unknown fields are errors: they are typing mistakes.
func readFamily(name string) ([]*Entry, error) {
	data, err := catalogFiles.ReadFile("catalog/" + name + ".json")
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

// findEntry returns the entry with an id, or the entry that reproduces a DF11 repo; nil if there is
// none.
func findEntry(like string) *Entry {
	for _, e := range Catalog() {
		if e.ID == like || slices.ContainsFunc(e.DF11Repos,
			func(r string) bool { return strings.EqualFold(r, like) }) {
			return e
		}
	}
	return nil
}

// score says how much an entry's match says about a source: a marker more than an architecture, an
// architecture more than the model type. 0 means that the entry does not fit.
func (e *Entry) score(cfg *config, inv *inventory) int {
	m := &e.Match
	isMissing := func(marker string) bool { return !inv.holds(marker) }
	tied := e.tiedBy(cfg)
	isTiedElse := m.Tied != nil && (tied == nil || *tied != *m.Tied)
	if isTiedElse || slices.ContainsFunc(m.Markers, isMissing) || slices.ContainsFunc(m.Absent,
		inv.holds) {
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

// tiedBy says whether embeddings are tied: as the config says, else as the class has it; nil if
// neither is known.
func (e *Entry) tiedBy(cfg *config) *bool {
	if tied := lookUp[bool](cfg, "tie_word_embeddings"); tied != nil || e == nil || e.Tied == nil {
		return tied
	}
	return e.Tied.Default
}

// keeps says whether the catalog leaves a module in BF16. A nil entry keeps none.
func (e *Entry) keeps(module string) bool {
	return e != nil && slices.ContainsFunc(e.KeepBF16, func(glob string) bool {
		ok, err := path.Match(glob, module)
		return ok && err == nil
	})
}

// likeHint says what Options.Like takes instead of a word: the entries with a name like it, else
// the families.
func likeHint(word string) string {
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' }
	stem := strings.ToLower(path.Base(word))
	if end := strings.IndexFunc(stem, func(r rune) bool { return !isLetter(r) }); end > 0 {
		stem = stem[:end]
	}
	var ids []string
	for _, e := range Catalog() {
		isLike := strings.HasPrefix(e.ID, stem) || len(stem) > 2 && strings.Contains(e.ID, stem)
		if isLike && len(e.PatternDict) > 0 {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return "--like takes a catalog entry or a DF11 repo that one reproduces; families of entries: " + strings.Join(families(), ", ")
	}
	return "--like takes one of these: " + strings.Join(ids, ", ")
}
