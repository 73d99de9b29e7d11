package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// listedModel is one entry of a list of models: docs/models.schema.json. Flags supply what it
// leaves out.
type listedModel struct {
	Source, Revision, Component, File, RepoID, Output, BaseModel, Layout, Dict, Like string
	Refresh, Expect                                                                  string

	Private *bool
}

// members returns the fields by their names in docs/models.schema.json.
func (m *listedModel) members() map[string]any {
	return map[string]any{
		"source": &m.Source, "revision": &m.Revision, "component": &m.Component, "file": &m.File,
		"repo-id": &m.RepoID, "output": &m.Output, "base-model": &m.BaseModel, "layout": &m.Layout,
		"pattern-dict": &m.Dict, "like": &m.Like, "refresh": &m.Refresh, "expect": &m.Expect,
		"private": &m.Private,
	}
}

// UnmarshalYAML reads an entry: a source alone, or members with the types of the schema.
func (m *listedModel) UnmarshalYAML(n *yaml.Node) error {
	given := map[string]yaml.Node{"source": *n}
	if n.Kind == yaml.MappingNode {
		if given = nil; n.Decode(&given) != nil {
			return fmt.Errorf("line %d: an entry has a member twice", n.Line)
		}
	}
	var wrong []string
	members := m.members()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value, want := given[name], ""
		switch to := members[name].(type) {
		case nil:
			want = "isn't a member of an entry"
		case *string:
			if value.ShortTag() != "!!str" || value.Decode(to) != nil || *to == "" {
				want = `must be a text; put numbers into quotes: "1.10"`
			}
		case **bool:
			if value.ShortTag() != "!!bool" || value.Decode(to) != nil {
				want = "must be true or false"
			}
		}
		if want != "" {
			wrong = append(wrong, fmt.Sprintf("line %d: %s %s", value.Line, name, want))
		}
	}
	if wrong != nil {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// The values of refresh and expect.
const (
	// refreshCommit converts a model again if that would change what's published; the default.
	refreshCommit = "commit"
	refreshNever  = "never"
	// expectRefusal marks a model that can't be converted.
	expectRefusal = "not_convertible"
)

// spec returns the source with its revision.
func (m listedModel) spec() string {
	if m.Revision == "" {
		return m.Source
	}
	return m.Source + "@" + m.Revision
}

// flags returns f with the entry's values, which win even over flags that exclude them.
func (m listedModel) flags(f convertFlags) convertFlags {
	f.listed, f.plan.Component, f.plan.WeightFile = true, m.Component, m.File
	f.target.repoID = cmp.Or(m.RepoID, f.target.repoID)
	f.target.out = cmp.Or(m.Output, f.target.out)
	f.layout = cmp.Or(m.Layout, f.layout)
	f.target.baseModel = cmp.Or(m.BaseModel, f.target.baseModel)
	if m.Dict != "" || m.Like != "" {
		f.patternDict, f.plan.Like = m.Dict, m.Like
	}
	if m.Private != nil {
		f.target.private, f.target.public = *m.Private, f.target.public && !*m.Private
	}
	return f
}

// targets returns the repo and the folder where the model goes, for the user me.
func (m listedModel) targets(f *convertFlags, me string) (names []string) {
	t := m.flags(*f).target
	name := resultName(path.Base(filepath.ToSlash(m.Source)))
	if t.push || t.repoID != "" {
		names = append(names, "the repo "+fullRepoID(me, cmp.Or(t.repoID, name)))
	}
	if t.out != "" || names == nil {
		names = append(names, "the folder "+filepath.Clean(cmp.Or(t.out, name)))
	}
	return names
}

// check returns what's wrong with an entry. It turns an address on the Hub into the ID, unless a
// folder has that name, and moves a revision after the ID into Revision.
func (m *listedModel) check() (err error) {
	address := m.Source
	if m.Source, err = repoID(address); err != nil {
		return err
	}
	if m.Source != address && model.Exists(m.Source) {
		m.Source = "hf://" + m.Source
	}
	for _, c := range []struct {
		name, value string
		of          []string
	}{
		{"refresh", m.Refresh, []string{refreshCommit, refreshNever}},
		{"expect", m.Expect, []string{expectRefusal}},
		{"layout", m.Layout, catalog.LayoutNames()},
	} {
		if c.value != "" && !slices.Contains(c.of, c.value) {
			return fmt.Errorf("%s: %q is none of: %s", c.name, c.value, strings.Join(c.of, ", "))
		}
	}
	id, revision, pinned := strings.Cut(m.Source, "@")
	switch {
	case m.Source == "":
		return errors.New("it has no source")
	case pinned && revision == "":
		return fmt.Errorf("%s: the revision after @ is empty", m.Source)
	case m.Dict != "" && m.Like != "":
		return errors.New("it has both pattern-dict and like")
	case m.Revision != "" && pinned:
		return errors.New("it has two revisions")
	case m.Output != "" && !filepath.IsAbs(m.Output) && !filepath.IsLocal(m.Output):
		return fmt.Errorf("output: %q leads out of this folder", m.Output)
	}
	if pinned && !model.Exists(m.Source) {
		m.Source, m.Revision = id, revision
	}
	if m.RepoID != "" {
		return names.CheckNewRepo(fullRepoID("you", m.RepoID))
	}
	return nil
}

// maxList bounds a list of models, in bytes.
const maxList = 1 << 20

// listHint shows the forms of an entry.
const listHint = "write the list like this: " +
	"models: [org/name, {source: org/other, repo-id: you/other-DF11}]; see docs/ci.md"

// readList reads a list of models and checks every entry.
func readList(file string) ([]listedModel, error) {
	b, err := disk.ReadInput(file, maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted{usageError{err}, listHint}
	}
	if err != nil {
		return nil, err
	}
	models, err := parseList(b)
	for i := range models {
		if wrong := models[i].check(); wrong != nil && err == nil {
			err = fmt.Errorf("entry %d: %w", i+1, wrong)
		}
	}
	if err != nil {
		return nil, hinted{usagef("%s: %w", file, err), listHint}
	}
	return models, nil
}

// parseList reads the YAML of a list.
func parseList(b []byte) ([]listedModel, error) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	var top map[string]yaml.Node
	err := d.Decode(&top)
	entries, ok := top["models"]
	switch {
	case err != nil && !wraps[*yaml.TypeError](err) && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("it isn't YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	case err != nil || len(top) != 1 || !ok:
		return nil, errors.New("want only models: at the top, and a list below it")
	case !errors.Is(d.Decode(new(yaml.Node)), io.EOF):
		return nil, errors.New("more than one YAML document; put all models into one list")
	case entries.Kind != yaml.SequenceNode:
		return nil, errors.New("it has no models; if that's on purpose, write models: []")
	}
	models := []listedModel{}
	if err = entries.Decode(&models); err == nil && len(models) < len(entries.Content) {
		err = errors.New("an entry is empty")
	}
	return models, err
}

// distinct refuses a list in which two models have the same target, for the user me. The Hub ignores
// case.
func (f *convertFlags) distinct(models []listedModel, me string) error {
	seen := map[string]string{}
	for _, m := range models {
		for _, target := range m.targets(f, me) {
			key := strings.ToLower(target)
			if other := seen[key]; other != "" {
				return hinted{usagef("%s and %s have the same target, %s", other, m.spec(), target),
					"give each its own target with repo-id or output in the list"}
			}
			seen[key] = m.spec()
		}
	}
	return nil
}

// slice sorts the models by a hash of source and target, and returns every n-th one from the i-th
// on. So a model's slice doesn't depend on the list's order or on what's published.
func slice(models []listedModel, part spans.Part) (mine []listedModel) {
	sum := func(m listedModel) string {
		sum := sha256.Sum256([]byte(m.spec() + "\n" + m.RepoID + "\n" + m.Output))
		return string(sum[:])
	}
	sums := slices.Sorted(slices.Values(transform(models, sum)))
	for _, m := range models {
		if at, _ := slices.BinarySearch(sums, sum(m)); at%part.N == part.I-1 {
			mine = append(mine, m)
		}
	}
	return mine
}
