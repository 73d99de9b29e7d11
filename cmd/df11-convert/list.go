package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/names"
)

// listedModel is one entry of a list of models, as docs/models.schema.json describes it. The
// command line completes it.
type listedModel struct {
	Source    string `yaml:"source"`
	Revision  string `yaml:"revision"`
	RepoID    string `yaml:"repo-id"`
	Output    string `yaml:"output"`
	BaseModel string `yaml:"base-model"`
	Layout    string `yaml:"layout"`
	Dict      string `yaml:"pattern-dict"`
	Like      string `yaml:"like"`
	Private   *bool  `yaml:"private"`
	Refresh   string `yaml:"refresh"`
}

// The values of refresh: when a model that is published is converted again.
const (
	// when a conversion would publish something else than is there; the default
	refreshCommit = "commit"
	refreshNever  = "never"
)

// spec is the source with its revision.
func (m listedModel) spec() string {
	if m.Revision == "" {
		return m.Source
	}
	return m.Source + "@" + m.Revision
}

// flags are the flags of the command line with the values of the entry, which win, also over flags
// that exclude them.
func (m listedModel) flags(f convertFlags) convertFlags {
	f.listed = true
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

// targets names where the model goes, as far as entry and command line say.
func (m listedModel) targets(f *convertFlags) (names []string) {
	t := m.flags(*f).target
	if t.repoID != "" {
		names = append(names, "the repo "+t.repoID)
	}
	if t.out != "" {
		names = append(names, "the folder "+t.out)
	}
	if names == nil {
		names = []string{"that of " + m.spec()}
	}
	return names
}

// check says what is wrong with an entry.
func (m listedModel) check() error {
	switch {
	case m.Source == "":
		return errors.New("has no source")
	case m.Refresh != "" && m.Refresh != refreshCommit && m.Refresh != refreshNever:
		return fmt.Errorf("refresh: %q is neither %s nor %s", m.Refresh, refreshCommit,
			refreshNever)
	case m.Dict != "" && m.Like != "":
		return errors.New("has both pattern-dict and like")
	case m.Revision != "" && strings.Contains(m.Source, "@"):
		return errors.New("has two revisions")
	case m.Output != "" && !filepath.IsAbs(m.Output) && !filepath.IsLocal(m.Output):
		return fmt.Errorf("output: %q leads out of this folder", m.Output)
	}
	if m.RepoID != "" {
		return names.CheckNewRepo(fullRepoID("you", m.RepoID))
	}
	return nil
}

// maxList bounds a list of models, in bytes.
const maxList = 1 << 20

// readList reads a list of models. No two of them may go to one target by their entries and the
// command line.
func readList(file string, f *convertFlags) ([]listedModel, error) {
	b, err := disk.ReadInput(file, maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted{usageError{err},
			"LIST is a YAML file of models; docs/ci.md has an example"}
	}
	if err != nil {
		return nil, err
	}
	var list struct {
		Models []listedModel `yaml:"models"`
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, usagef("%s: %s", file, yamlWords.Replace(err.Error()))
	}
	if !errors.Is(d.Decode(new(yaml.Node)), io.EOF) {
		return nil, usagef("%s: more than one YAML document; put all models into one list", file)
	}
	models := list.Models
	seen := map[string]int{}
	for i, m := range models {
		if err := m.check(); err != nil {
			return nil, usageError{fmt.Errorf("%s: entry %d: %w", file, i+1, err)}
		}
		for _, target := range m.targets(f) {
			if seen[target] > 0 {
				return nil, hinted{usagef("%s: entries %d and %d have one target, %s", file,
					seen[target], i+1, target),
					"name a target for each with repo-id or output in the list"}
			}
			seen[target] = i + 1
		}
	}
	if models == nil {
		return nil, usagef("%s names no model; a list that is empty on purpose says models: []",
			file)
	}
	return models, nil
}

// yamlWords makes one line of what the library says of a list, in the words of
// docs/models.schema.json.
var yamlWords = strings.NewReplacer("yaml: unmarshal errors:\n  ", "", "\n  ", "; ",
	"not found in type main.listedModel", "is no member of an entry")
