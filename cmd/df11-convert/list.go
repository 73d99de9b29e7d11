package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// listedModel is one entry of a list of models, always on the Hub: docs/models.schema.json. Flags
// supply what it leaves out. status prints it, so that workflows need no YAML parser of their own,
// which may read anchors, merges, and words such as "on" in another way.
type listedModel struct {
	Source    string `json:"source"`
	Revision  string `json:"revision,omitempty"`
	Component string `json:"component,omitempty"`
	File      string `json:"file,omitempty"`
	RepoID    string `yaml:"repo-id" json:"repo-id,omitempty"`
	Layout    string `json:"layout,omitempty"`
	Dict      string `yaml:"pattern-dict" json:"pattern-dict,omitempty"`
	Like      string `json:"like,omitempty"`
	Private   *bool  `json:"private,omitempty"`
	License   string `json:"license,omitempty"`
	Expect    string `json:"expect,omitempty"`

	repo string // the whole name of the target; "" if it isn't known before a run
}

// UnmarshalYAML reads an entry: a source alone, or the members of the schema.
func (m *listedModel) UnmarshalYAML(decode func(any) error) error {
	if decode(&m.Source) == nil {
		return nil
	}
	type entry listedModel
	return decode((*entry)(m))
}

// expectRefusal is the value of expect: it marks a model that can't be converted.
const expectRefusal = "not_convertible"

// spec returns the source with its revision.
func (m listedModel) spec() string {
	if m.Revision == "" {
		return m.Source
	}
	return m.Source + "@" + m.Revision
}

// flags returns f with the entry's values, which win even over flags that exclude them. Whoever
// calls it has refused an entry that would open a target in spite of --private.
func (m listedModel) flags(f convertFlags) convertFlags {
	f.listed, f.recipe.Component, f.recipe.File = true, m.Component, m.File
	f.target.repoID, f.target.license = m.RepoID, m.License
	f.recipe.Layout = cmp.Or(m.Layout, f.recipe.Layout)
	if m.Dict != "" || m.Like != "" {
		f.recipe.PatternDict, f.recipe.Like = m.Dict, m.Like
	}
	if m.Private != nil {
		f.target.private, f.target.public = *m.Private, !*m.Private
	}
	return f
}

// needsPush returns a member of the entry that says where and how to publish, or "".
func (m listedModel) needsPush() string {
	switch {
	case m.RepoID != "":
		return "repo-id"
	case m.Private != nil:
		return "private"
	}
	return ""
}

// target returns the model's repo for the user me. A folder has its name.
func (m listedModel) target(me string) string {
	return names.FullRepo(me, cmp.Or(m.RepoID, path.Base(m.Source)+names.ResultEnd))
}

// check returns what's wrong with an entry. It turns an address on the Hub into the ID, and moves a
// revision after the ID into Revision.
func (m *listedModel) check() error {
	id, err := address.RepoID(m.Source)
	if err != nil {
		return err
	}
	repo, revision, pinned := strings.Cut(id, "@")
	switch {
	case names.CheckNewRepo(repo) != nil:
		return fmt.Errorf("%q is no repo on the Hub, such as org/name", m.Source)
	case pinned && (revision == "" || m.Revision != ""):
		return fmt.Errorf("%s: want one revision, after @ or as revision", m.Source)
	case m.Expect != "" && m.Expect != expectRefusal:
		return fmt.Errorf("expect: %q isn't %s", m.Expect, expectRefusal)
	}
	m.Source, m.Revision = repo, cmp.Or(revision, m.Revision)
	if _, err := catalog.ParseLayout(m.Layout); err != nil {
		return err
	}
	return names.CheckNewRepo(m.target("you"))
}

// maxList bounds a list of models, in bytes.
const maxList = 1 << 20

// readList reads a list of models and checks every entry. The path of a pattern
// dict begins at the list's folder. "-" is standard input.
func readList(ctx context.Context, file string) ([]listedModel, error) {
	read := func() ([]byte, error) { return disk.ReadInput(ctx, file, maxList) }
	if file == "-" {
		read = func() ([]byte, error) { return disk.ReadStdin(ctx, maxList) }
	}
	st, _ := os.Stat(file)
	b, err := read()
	switch {
	case err != nil && st != nil && st.IsDir():
		return nil, hint.On(err, hint.ListForm)
	case err != nil:
		return nil, err
	}
	models, err := parseList(b)
	isFile := st != nil && st.Mode().IsRegular() // or a pipe, next to which there's nothing
	for i := range models {
		if wrong := models[i].check(); wrong != nil && err == nil {
			err = fmt.Errorf("entry %d: %w", i+1, wrong)
		}
		if dict := models[i].Dict; isFile && dict != "" && !filepath.IsAbs(dict) {
			models[i].Dict = filepath.Join(filepath.Dir(file), dict)
		}
	}
	if err != nil {
		return nil, hint.On(usagef("%s: %w", file, err), hint.ListForm)
	}
	return models, nil
}

// parseList reads the YAML of a list.
func parseList(b []byte) ([]listedModel, error) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	type list struct{ Models []*listedModel }
	var found list
	err := d.Decode(&found)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, whyNotList(b)
	case found.Models == nil:
		return nil, errors.New("it has no models; if that's on purpose, write models: []")
	case slices.Contains(found.Models, nil): // without the pointer, the decoder leaves it out
		return nil, whyNotList(b)
	case !errors.Is(d.Decode(new(yaml.Node)), io.EOF):
		return nil, errors.New("more than one YAML document; put all models into one list")
	}
	return transform(found.Models, func(m *listedModel) listedModel { return *m }), nil
}

// distinct refuses a list in which two models have the same target, for the user me. The Hub
// ignores case.
func distinct(models []listedModel, me string) error {
	seen := map[string]string{}
	for _, m := range models {
		target := m.target(me)
		key := strings.ToLower(target)
		if other := seen[key]; other == m.spec() {
			return hint.On(usagef("%s is in the list twice, with the same target, %s", other, target),
				hint.Twice)
		} else if other != "" {
			return hint.On(usagef("%s and %s have the same target, %s", other, m.spec(), target),
				hint.SameTarget)
		}
		seen[key] = m.spec()
	}
	return nil
}

// slice returns the models of this part. The parts differ by at most one model. Each model has an
// order of the parts from its entry's hash, and takes the first of them with room (consistent
// hashing with bounded loads, https://arxiv.org/abs/1608.01350), so most models keep their part
// when others come and go, and the order of the list doesn't matter. All parts together cost little
// more than a hash per model: parts fill up almost at once, so few models look at many.
func slice(models []listedModel, part spans.Part) (mine []listedModel) {
	type turn struct{ model, rank, first, step int }
	inTurn := make([]turn, len(models))
	for i, m := range models {
		sum := sha256.Sum256([]byte(m.spec() + "\n" + m.RepoID))
		number := func(k, below int) int { return int(binary.BigEndian.Uint64(sum[8*k:]) % uint64(below)) }
		x := turn{i, number(0, math.MaxInt), number(1, part.N), 1 + number(2, part.N)}
		for gcd(x.step, part.N) > 1 { // else it doesn't come to all parts
			x.step++
		}
		inTurn[i] = x
	}
	slices.SortFunc(inTurn, func(a, b turn) int { return cmp.Compare(a.rank, b.rank) })
	room, larger := len(models)/part.N, len(models)%part.N // larger parts have room for one more
	held := make([]int, part.N)
	taken := make([]bool, len(models))
	for _, x := range inTurn {
		at := x.first
		for held[at] > room || held[at] == room && larger == 0 {
			at = (at + x.step) % part.N
		}
		if held[at]++; held[at] > room {
			larger--
		}
		taken[x.model] = at == part.I-1
	}
	for i, m := range models {
		if taken[i] {
			mine = append(mine, m)
		}
	}
	return mine
}

// gcd returns the greatest common divisor.
func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
