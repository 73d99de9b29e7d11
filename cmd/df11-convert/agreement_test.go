package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// happenings are what may have happened to org/mI and its target tester/mI-DF11 before status.
// published says that it was published first. The text is what the list's entry has more.
var happenings = []struct {
	name      string
	published bool
	entry     string
	happen    func(s *hubtest.Server, source, target string)
}{
	{"new", false, "", nil},
	{"published", true, "", nil},
	{"README of the source", true, "", func(s *hubtest.Server, source, _ string) {
		s.Push(source, "main", map[string][]byte{"README.md": []byte("# new")})
	}},
	{"weights of the source", true, "", func(s *hubtest.Server, source, _ string) {
		s.AddModel(source, hubtest.NewLlama(99, hubtest.ModelOptions{Hidden: 32, Vocab: 128, Layers: 1, Extra: hubtest.OwnPicture}))
	}},
	{"a file of the target deleted", true, "", func(s *hubtest.Server, _, target string) {
		s.Push(target, "main", map[string][]byte{"lm_head.safetensors": nil})
	}},
	{"the manifest deleted", true, "", func(s *hubtest.Server, _, target string) {
		s.Push(target, "main", map[string][]byte{"df11-manifest.json": nil})
	}},
	{"config.json of the target deleted", true, "", func(s *hubtest.Server, _, target string) {
		s.Push(target, "main", map[string][]byte{"config.json": nil})
	}},
	{"someone's file in the target", true, "", func(s *hubtest.Server, _, target string) {
		s.Push(target, "main", map[string][]byte{"notes.txt": []byte("mine")})
	}},
	{"someone's weights in the target", true, "", func(s *hubtest.Server, _, target string) {
		s.Push(target, "main", map[string][]byte{"my_adapter.safetensors": []byte("x")})
	}},
	{"someone's card", true, "", func(s *hubtest.Server, _, target string) {
		s.Push(target, "main", map[string][]byte{"README.md": []byte("# mine")})
	}},
	{"someone's model", false, "", func(s *hubtest.Server, _, target string) {
		s.AddRepo(target, map[string][]byte{"config.json": []byte("{}"), "model.safetensors": []byte("x")})
	}},
	{"someone's weights alone", false, "", func(s *hubtest.Server, _, target string) {
		s.AddRepo(target, map[string][]byte{"my_adapter.safetensors": []byte("x")})
	}},
	{"an empty repo", false, "", func(s *hubtest.Server, _, target string) { s.AddRepo(target, nil) }},
	{"a private repo", false, "", func(s *hubtest.Server, _, target string) { s.AddRepo(target, nil, hubtest.Private()) }},
	{"private asked, open there", true, "private: true", nil},
	{"private asked, nothing there", false, "private: true", nil},
	{"private source", true, "", func(s *hubtest.Server, source, _ string) { s.Configure(source, hubtest.Private()) }},
	{"private target", true, "", func(s *hubtest.Server, _, target string) { s.Configure(target, hubtest.Private()) }},
	{"license asked", true, "license: mit", nil},
	{"another layout", true, "layout: transformers-single", nil},
	{"gated source", true, "", func(s *hubtest.Server, source, _ string) { s.Configure(source, hubtest.Gated("manual")) }},
	{"disabled source", false, "", func(s *hubtest.Server, source, _ string) { s.Configure(source, hubtest.Disabled()) }},
	{"no such source", false, "", func(s *hubtest.Server, source, _ string) { s.Configure(source, hubtest.Private()) }},
	{"no such revision", false, "revision: nowhere", nil},
	{"no BF16", false, "", func(s *hubtest.Server, source, _ string) { s.AddRepo(source, llamaFiles("F16", 0, "")) }},
	{"no BF16, as expected", false, "expect: not_convertible", func(s *hubtest.Server, source, _ string) {
		s.AddRepo(source, llamaFiles("F16", 0, ""))
	}},
	{"tied, but stored twice with other bytes, as expected", false, "expect: not_convertible", tieFalsely},
	{"convertible, not as expected", false, "expect: not_convertible", nil},
	{"published, not as expected", true, "expect: not_convertible", nil},
	{"a foreign namespace", false, "repo-id: elsewhere/mine", nil},
	{"a broken card", false, "", func(s *hubtest.Server, source, _ string) {
		s.Push(source, "main", map[string][]byte{"README.md": []byte("---\nlicense: [mit\n---\n")})
	}},
	{"the source as target", false, "repo-id: SOURCE", nil},
}

// tieFalsely makes the config of a source say that two weights are tied, whose bytes differ.
func tieFalsely(s *hubtest.Server, source, _ string) {
	config, _ := s.ReadFile(source, "main", "config.json")
	s.Push(source, "main", map[string][]byte{"config.json": bytes.Replace(config,
		[]byte(`"tie_word_embeddings": false`), []byte(`"tie_word_embeddings": true`), 1)})
}

// TestAnEntryExpectsWhatOnlyWeightsShow checks that expect: not_convertible holds for a model that
// is refused because of its weights, in a list before and after, and that the entry without it
// fails.
func TestAnEntryExpectsWhatOnlyWeightsShow(t *testing.T) {
	s, list := fourModels(t)
	n := newNight(t, s, list)
	tieFalsely(s, "org/m0", "")
	world.Write(t, list, "models: [org/m0]")
	if b, _, err := n.run(t.Context(), t); err == nil || b.Models[0].Error.Kind != "aliases_differ" ||
		!strings.Contains(b.Models[0].Error.Hint, "or add expect: not_convertible to its entry") {
		t.Fatalf("%v, %+v", err, b.Models[0])
	}
	world.Write(t, list, "models: [{source: org/m0, expect: not_convertible}]")
	for range 2 {
		if r, text := n.status(t.Context(), t, true, pageFlags{}); r.Exit != 0 || r.Models[0].State != stateRefused {
			t.Errorf("status: %s", text)
		}
		if b, _, err := n.run(t.Context(), t); err != nil || b.Models[0].Outcome != string(stateRefused) {
			t.Errorf("batch: %v, %+v", err, b.Models[0])
		}
	}
}

// TestStatusSaysWhyARunIsNeeded checks the reason and the bill of a source that was renamed, before
// and after the run, and of an entry with another license: only small files change.
func TestStatusSaysWhyARunIsNeeded(t *testing.T) {
	s, list := fourModels(t)
	n := newNight(t, s, list)
	world.Write(t, list, "models: [org/m0, org/m1]")
	if _, diag, err := n.run(t.Context(), t); err != nil {
		t.Fatal(err, diag)
	}
	s.Rename("org/m0", "org/new")
	world.Write(t, list, "models: [org/m0, {source: org/m1, license: mit}]")
	_, text := n.status(t.Context(), t, false, pageFlags{})
	const look = "a look: the source's name is org/new now; an entry with that name needs repo-id: tester/m0-DF11 "
	for _, want := range []string{"a run: it was converted as org/m0; " + look, "a run: its card lacks the license of the entry",
		"2 models to update: only small files change"} {
		if !strings.Contains(oneSpace(text), want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	r, _ := n.status(t.Context(), t, true, pageFlags{})
	if m := r.Models[0]; m.SourceNow != "org/new" || r.Bill.Read+r.Bill.Publish > 0 {
		t.Errorf("%+v, %+v", m, r.Bill)
	}
	if b, diag, err := n.run(t.Context(), t); err != nil || b.Read > 0 {
		t.Errorf("%v, %d bytes read, %s", err, b.Read, diag)
	}
	r, _ = n.status(t.Context(), t, true, pageFlags{})
	_, text = n.status(t.Context(), t, false, pageFlags{})
	if r.Exit != 0 || !strings.Contains(oneSpace(text), look) {
		t.Errorf("after the run: %d, %s", r.Exit, text)
	}
}

// oneSpace returns a text on one line, with one space between words.
func oneSpace(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestStatusSaysWhatBatchDoes checks random lists in random worlds: what status says about each
// model is what batch does with it. "current" means no request that writes to its target, a model
// to convert is converted, and what needs a person fails for the same kind of reason. No hint of
// either names a flag that it lacks. The status after that has nothing left to convert.
func TestStatusSaysWhatBatchDoes(t *testing.T) {
	for _, seed := range world.Seeds(t, 12, 200) {
		t.Run(fmt.Sprintf("DF11_SEED=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { saysWhatBatchDoes(t, rand.New(rand.NewPCG(seed, 2))) })
		})
	}
}

func saysWhatBatchDoes(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	s, list := fourModels(t, inMemory, hubtest.WithUser("hf_any", hubtest.User{Name: "tester", Orgs: []string{"org"}, Reads: []string{"elsewhere"}}))
	picks := rnd.Perm(len(happenings))[:4]
	var first, entries []string
	names := map[string]string{}
	for i, p := range picks {
		source, h := fmt.Sprintf("org/m%d", i), happenings[p]
		names[source] = h.name
		if h.published {
			first = append(first, source)
		}
		entry := "{source: " + source + ", " + strings.ReplaceAll(h.entry, "SOURCE", source) + "}"
		entries = append(entries, entry)
	}
	n := newNight(t, s, list)
	world.Write(t, list, "models: ["+strings.Join(first, ", ")+"]")
	if _, diag, err := n.run(t.Context(), t); err != nil {
		t.Fatal(err, diag)
	}
	for i, p := range picks {
		if happen := happenings[p].happen; happen != nil {
			happen(s, fmt.Sprintf("org/m%d", i), fmt.Sprintf("tester/m%d-DF11", i))
		}
	}
	n.list = filepath.Join(t.TempDir(), "list.yaml")
	world.Write(t, n.list, "models: ["+strings.Join(entries, ", ")+"]")
	said, _ := n.status(t.Context(), t, true, pageFlags{})
	_, text := n.status(t.Context(), t, false, pageFlags{})
	if err := checkHints([]string{"status", n.list}, text); err != nil {
		t.Error(err)
	}
	s.ResetLog()
	b, diag, _ := n.run(t.Context(), t)
	if err := checkHints([]string{"batch", n.list}, diag); err != nil {
		t.Error(err)
	}
	for i, m := range said.Models {
		did, writes := b.Models[i], 0
		for _, q := range s.Requests() {
			if q.Method != "GET" && q.Method != "HEAD" && m.Target != "" && strings.Contains(q.Path, m.Target) {
				writes++
			}
		}
		about := fmt.Sprintf("%s (%s): status says %s, todo %v, %+v; batch: %s, %+v, %d writes", m.Source, names[m.Source], m.State, m.Todo, m.Error, did.Outcome, did.Error, writes)
		switch {
		case m.Error != nil:
			if did.Outcome != outcomeFailed || did.Error.Kind != m.Error.Kind || did.Error.Hint != m.Error.Hint {
				t.Error(about)
			}
		case m.Todo:
			if did.Outcome != outcomeConverted || writes == 0 {
				t.Error(about)
			}
		case did.Outcome != string(m.State) || writes > 0:
			t.Error(about)
		}
	}
	after, _ := n.status(t.Context(), t, true, pageFlags{})
	for i, m := range after.Models {
		if was := said.Models[i]; m.Todo || was.Todo && m.State != pipeline.Current {
			t.Errorf("%s (%s) after batch: %s, todo %v", m.Source, names[m.Source], m.State, m.Todo)
		}
	}
}
