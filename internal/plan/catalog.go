package plan

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed catalog/*.json
var catalogFiles embed.FS

// Catalogue is the ordered list of models whose pattern dicts are known.
type Catalogue struct{ Entries []Entry }

// Entry is one model class: how to recognise it and what its units are. docs/models.md explains every field.
type Entry struct {
	ID         string `json:"id"`
	Layout     Layout `json:"layout"`
	Match      Match  `json:"match"`
	LikeOnly   bool   `json:"like_only,omitempty"` // never chosen but by Options.Like
	Provenance string `json:"provenance"`

	Refuse *Refusal `json:"refuse,omitempty"` // the class is known not to be convertible
	Derive bool     `json:"derive,omitempty"` // the class is known, its dict is not: use the rule for unknown ones

	PatternDict   PatternDict `json:"pattern_dict,omitempty"`
	Template      bool        `json:"template,omitempty"`       // expand {e}, filter by presence, group block indices
	OptionalAttrs []string    `json:"optional_attrs,omitempty"` // attributes that some blocks lack
	Split         PatternDict `json:"split,omitempty"`          // used when a unit would be too large
	VisionUnits   PatternDict `json:"vision_units,omitempty"`   // added on request
	PathRename    [][2]string `json:"path_rename,omitempty"`    // Hub name → module path: regex, replacement
	Tied          *TiedNames  `json:"tied,omitempty"`
	KeepBF16      []string    `json:"keep_bf16,omitempty"` // module paths that stay, with * for any characters

	Loader        Loader   `json:"loader"`
	FormatVersion string   `json:"format_version,omitempty"` // of the published repos
	DF11Repos     []string `json:"df11_repos,omitempty"`
	ExampleRepos  []string `json:"example_repos,omitempty"`
	Verification  string   `json:"verification,omitempty"`
	Unchecked     bool     `json:"unchecked,omitempty"` // names or order that nobody compared with the class
	Notes         string   `json:"notes,omitempty"`
}

// Match says which sources an entry is for. Every list that is not empty must hold.
type Match struct {
	ModelType     []string `json:"model_type,omitempty"`
	Architectures []string `json:"architectures,omitempty"`
	ClassName     []string `json:"class_name,omitempty"`    // diffusers
	ComfyUIClass  string   `json:"comfyui_class,omitempty"` // what the ComfyUI node calls it; not matched
	Markers       []string `json:"markers,omitempty"`       // tensors that must exist
	Absent        []string `json:"absent,omitempty"`        // tensors that must not exist
	Tied          *bool    `json:"tied,omitempty"`          // tie_word_embeddings must be this
}

// Refusal explains why a known class cannot be converted.
type Refusal struct {
	Why  string `json:"why"`
	Hint string `json:"hint,omitempty"`
}

// TiedNames says which matrices a class shares.
type TiedNames struct {
	Head      string      `json:"head,omitempty"`      // module path of the head
	Embedding string      `json:"embedding,omitempty"` // module path of the token embedding
	Default   *bool       `json:"default,omitempty"`   // tie_word_embeddings of the class when the config is silent
	Always    [][2]string `json:"always,omitempty"`    // tensor that is not stored, tensor that holds its values
}

// Embedded returns the catalogue that is built in.
func Embedded() (*Catalogue, error) { return embedded() }

// embedded parses the built-in catalogue once.
var embedded = sync.OnceValues(func() (*Catalogue, error) { return LoadCatalogue(catalogFiles) })

// LoadCatalogue reads catalog/*.json in name order; each file is {"family": …, "entries": […]}.
func LoadCatalogue(files fs.FS) (*Catalogue, error) {
	names, err := fs.Glob(files, "catalog/*.json")
	if err != nil {
		return nil, err
	}
	c := &Catalogue{}
	for _, name := range names {
		entries, err := readFamily(files, name)
		if err != nil {
			return nil, fmt.Errorf("read catalogue %s: %w", name, err)
		}
		c.Entries = append(c.Entries, entries...)
	}
	return c, c.check()
}

// readFamily reads one file of the catalogue. Unknown fields are errors: they are typing mistakes.
func readFamily(files fs.FS, name string) ([]Entry, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	dec.DisallowUnknownFields()
	var family struct {
		Family  string  `json:"family"`
		Entries []Entry `json:"entries"`
	}
	if err := dec.Decode(&family); err != nil {
		return nil, err
	}
	return family.Entries, nil
}

// versionLimits matches what pip takes as versions of a package, and "".
var versionLimits = regexp.MustCompile(`^((>=|<=|==|!=|~=|<|>)\d+(\.\d+)*(,|$))*$`)

// check refuses a catalogue with repeated ids or entries that can do nothing.
func (c *Catalogue) check() error {
	seen := map[string]bool{}
	for _, e := range c.Entries {
		switch {
		case e.ID == "" || seen[e.ID]:
			return fmt.Errorf("catalogue: id %q is empty or appears twice", e.ID)
		case len(e.PatternDict) == 0 && e.Refuse == nil && !e.Derive:
			return fmt.Errorf("catalogue: %s has neither a pattern dict nor a reason to refuse", e.ID)
		case e.Provenance == "":
			return fmt.Errorf("catalogue: %s has no provenance", e.ID)
		case !versionLimits.MatchString(e.Loader.Transformers):
			return fmt.Errorf("catalogue: %s: transformers %q are no version limits as pip takes them", e.ID, e.Loader.Transformers)
		}
		seen[e.ID] = true
	}
	return nil
}

// find returns the entry that Options.Like names: by id, or by a DF11 repo that it reproduces.
func (c *Catalogue) find(like string) *Entry {
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.ID == like || slices.ContainsFunc(e.DF11Repos, func(r string) bool { return strings.EqualFold(r, like) }) {
			return e
		}
	}
	return nil
}

// match returns the entry for a source. Of several, the one that says most about it wins: markers before architectures
// before the model type; among equals, the first in the catalogue. Entries that are like-only never match.
func (c *Catalogue) match(s *Survey, cfg *config, inv *inventory) *Entry {
	var best *Entry
	most := 0
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.LikeOnly || e.Layout.family() != s.Layout {
			continue
		}
		if n := e.Match.score(cfg, inv, e); n > most {
			best, most = e, n
		}
	}
	return best
}

// score says how much a match says about a source; 0 means that it does not match.
func (m *Match) score(cfg *config, inv *inventory, e *Entry) int {
	if !m.fitsTensors(inv) || !m.fitsTie(cfg, e) {
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
		switch {
		case len(c.listed) == 0:
		case !c.matches:
			return 0
		default:
			n += c.points
		}
	}
	return n
}

// fitsTensors checks markers and absent tensors.
func (m *Match) fitsTensors(inv *inventory) bool {
	missing := slices.ContainsFunc(m.Markers, func(n string) bool { return !inv.holds(n) })
	return !missing && !slices.ContainsFunc(m.Absent, inv.holds)
}

// fitsTie checks the condition on tied embeddings.
func (m *Match) fitsTie(cfg *config, e *Entry) bool {
	if m.Tied == nil {
		return true
	}
	tied := cfg.tied()
	if tied == nil && e.Tied != nil {
		tied = e.Tied.Default
	}
	return tied != nil && *tied == *m.Tied
}
