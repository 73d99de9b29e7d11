package main

import (
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestStatusPrintsTheEntries checks that status prints each entry as a batch takes it, also where
// parsers of YAML differ, so that no workflow needs another one.
func TestStatusPrintsTheEntries(t *testing.T) {
	s, _ := fourModels(t, inMemory)
	list := filepath.Join(t.TempDir(), "list.yaml")
	world.Write(t, list, `models:
- &team {source: org/m0, repo-id: team, private: false}
- {source: org/m1, repo-id: me/m1, private: true, <<: *team}
- {source: org/m2, <<: {private: true}}
- {source: org/m3@main, private: yes, license: mit}
- hf://org/m0
`)
	n := newNight(t, s, list)
	models, err := readList(t.Context(), list)
	world.Must(t, err)
	r, doc := n.status(t.Context(), t, true, pageFlags{})
	if len(r.Models) != len(models) {
		t.Fatal(doc)
	}
	private := []string{"false", "true", "true", "true", ""}
	for i, m := range models {
		said := ""
		if e := r.Models[i].Entry; e == nil || e.Source != m.Source || e.Revision != m.Revision ||
			e.RepoID != m.RepoID || e.License != m.License {
			t.Fatalf("%+v, want %+v", e, m)
		} else if e.Private != nil {
			said = choose(*e.Private, "true", "false")
		}
		if said != private[i] {
			t.Errorf("entry %d: private is %q, want %q", i+1, said, private[i])
		}
		f := m.flags(convertFlags{})
		if f.target.private != (said == "true") || f.target.public != (said == "false") {
			t.Errorf("a batch takes entry %d for %+v", i+1, f.target)
		}
	}
}
