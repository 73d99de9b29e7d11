package main

import (
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestTheAudienceIsKnownBefore checks which targets strangers don't see, before a run says their
// names. What a Hub doesn't state, or shows to no one without a token, counts as hidden.
func TestTheAudienceIsKnownBefore(t *testing.T) {
	s := hubtest.New(inMemory)
	t.Cleanup(s.Close)
	s.AddModel("org/m", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 128, Layers: 1}))
	s.AddRepo("tester/m-DF11", nil)
	s.AddRepo("tester/shut", nil, hubtest.Private())
	s.AddRepo("tester/gated", nil, hubtest.Gated("auto"))
	s.AddRepo("tester/odd", nil, hubtest.Described(func(info map[string]any) { delete(info, "private") }))
	for name, c := range map[string]struct {
		token, repo string
		asks        pipeline.Visibility
		want        pipeline.Audience
	}{
		"open, by default": {"hf_any", "", "", pipeline.Audience{Repo: "tester/m-DF11"}},
		"asked":            {"hf_any", "", pipeline.Private, pipeline.Audience{Repo: "tester/m-DF11", Hidden: true}},
		"absent":           {"hf_any", "new", "", pipeline.Audience{Repo: "tester/new"}},
		"absent, asked":    {"hf_any", "new", pipeline.Private, pipeline.Audience{Repo: "tester/new", Hidden: true}},
		"private":          {"hf_any", "shut", "", pipeline.Audience{Repo: "tester/shut", Hidden: true}},
		"private, public":  {"hf_any", "shut", pipeline.Public, pipeline.Audience{Repo: "tester/shut", Hidden: true}},
		"gated":            {"hf_any", "gated", "", pipeline.Audience{Repo: "tester/gated"}},
		"unstated":         {"hf_any", "odd", "", pipeline.Audience{Repo: "tester/odd", Hidden: true}},
		"no token":         {"", "tester/shut", "", pipeline.Audience{Repo: "tester/shut", Hidden: true}},
		"no token, open":   {"", "tester/m-DF11", "", pipeline.Audience{Repo: "tester/m-DF11"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := pipeline.Options{Repo: c.repo, Visibility: c.asks, Means: pipeline.Means{Hubs: &pipeline.Hubs{
				Options: &hub.Options{Connection: hub.Connection{Endpoint: s.URL, Token: c.token, HTTPTransport: s}}}}}
			got, err := pipeline.AudienceOf(t.Context(), "org/m", o)
			if err != nil || *got != c.want {
				t.Errorf("%+v, %v, want %+v", got, err, c.want)
			}
		})
	}
	for _, q := range s.Requests() {
		if q.Method != "GET" && q.Method != "HEAD" {
			t.Errorf("it sends %s %s", q.Method, q.Path)
		}
	}
}

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
	models, err := readList(list)
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
