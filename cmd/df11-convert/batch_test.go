package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestBatchNeverMixesTwoModels checks that batch refuses a list before any work if two of its
// models would go into one target.
func TestBatchNeverMixesTwoModels(t *testing.T) {
	dir := t.TempDir()
	both := targetFlags{repoID: "me/both", out: filepath.Join(dir, "both")}
	for _, x := range []struct {
		text  string
		flags targetFlags
		good  bool
	}{
		{"{source: org/a}, {source: org/b}", targetFlags{}, true},
		{"{source: org/a}, {source: org/a}", targetFlags{}, false},
		{"{source: org/a, repo-id: me/a}, {source: org/a, repo-id: me/b}", targetFlags{}, true},
		{"{source: org/a, repo-id: me/a}, {source: org/b, repo-id: me/a}", targetFlags{}, false},
		{"{source: org/a}, {source: org/b}", targetFlags{repoID: both.repoID}, false},
		{"{source: org/a, repo-id: me/a}, {source: org/b}", targetFlags{repoID: both.repoID}, true},
		{"{source: org/a, repo-id: me/a}, {source: org/b, repo-id: me/b}", targetFlags{out: both.out}, false},
		{"{source: org/a}", both, true},
		{"org/a, org/b", targetFlags{push: true}, true},
		{"org/a, other/a", targetFlags{push: true}, false},
		{"org/a, other/a", targetFlags{}, false},
		{"org/a, org/a@v1", targetFlags{push: true}, false},
		{"org/a, 'https://huggingface.co/org/a'", targetFlags{push: true}, false},
		{"org/a, {source: org/b, repo-id: a-DF11}", targetFlags{push: true}, false},
		{"org/a, {source: org/b, repo-id: You/A-DF11}", targetFlags{push: true}, false},
		{"org/a, {source: org/b, repo-id: me/a-DF11}", targetFlags{push: true}, true},
		{"{source: ./a, output: out}, {source: ./b, output: ./out}", targetFlags{}, false},
	} {
		file := filepath.Join(dir, "list.yaml")
		world.Write(t, file, []byte("models: ["+x.text+"]"))
		models, err := readList(file)
		if err == nil {
			err = (&convertFlags{target: x.flags}).distinct(models, "you")
		}
		if (err == nil) != x.good || err != nil && kindOf(err).code != exitUsage {
			t.Errorf("%q with %+v: %v", x.text, x.flags, err)
		}
	}
}

// TestAnAddressInAListIsNoFolder checks that an entry with an address means the Hub's model, also
// if a folder has the model's name.
func TestAnAddressInAListIsNoFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	world.Write(t, "org/here/config.json", []byte("{}"))
	models, err := listOf(t, "models: [hf://org/here, 'https://huggingface.co/org/here/tree/v1', hf://org/other, org/here]")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"hf://org/here", "org/here@v1", "org/other", "org/here"} {
		if got := models[i].spec(); got != want {
			t.Errorf("entry %d is %s, not %s", i+1, got, want)
		}
	}
}

// TestAnEntryWinsOverTheCommandLine checks that no flag of the command line spoils or changes an
// entry of the list.
func TestAnEntryWinsOverTheCommandLine(t *testing.T) {
	yes, no := true, false
	f := convertFlags{target: targetFlags{push: true, public: true, baseModel: "none"}}
	f.patternDict, f.plan.Like = "dict.json", "llama"
	for _, m := range []listedModel{{Private: &yes}, {Private: &no}, {BaseModel: "org/base"}, {Dict: "own.json"}, {Like: "qwen3"},
		{Component: "unet"}, {File: "x.safetensors"}} {
		got := m.flags(f)
		switch err := got.target.check(); {
		case err != nil:
			t.Errorf("%+v: %v", m, err)
		case m.Private != nil && got.target.private != *m.Private, m.BaseModel != "" && got.target.baseModel != m.BaseModel,
			got.plan.Component != m.Component, got.plan.WeightFile != m.File,
			(m.Dict != "" || m.Like != "") && (got.patternDict != m.Dict || got.plan.Like != m.Like):
			t.Errorf("%+v becomes %+v, %q, %q", m, got.target, got.patternDict, got.plan.Like)
		}
	}
}

// TestReadList checks that the program and the schema accept lists as editors write them, and
// refuse others. The program calls those usage errors.
func TestReadList(t *testing.T) {
	yes := true
	for text, want := range map[string]listedModel{
		"\ufeffmodels:\r\n- source: org/a\r\n": {Source: "org/a"},
		"models:\n- org/a\n":                   {Source: "org/a"},
		"models: [org/a@v1]":                   {Source: "org/a", Revision: "v1"},
		"models: [{source: org/a, component: unet, file: x.safetensors}]":               {Source: "org/a", Component: "unet", File: "x.safetensors"},
		"models:\n- source: org/a\n  revision: v1\n  repo-id: me/a\n  refresh: never\n": {Source: "org/a", Revision: "v1", RepoID: "me/a", Refresh: "never"},
		"models:\n- source: org/a\n  like: llama\n  private: true\n  layout: single\n":  {Source: "org/a", Like: "llama", Private: &yes, Layout: "single"},
		"models:\n- {source: org/a, expect: not_convertible}\n":                         {Source: "org/a", Expect: expectRefusal},
		"models:\n- &a {source: org/a, like: llama}\n":                                  {Source: "org/a", Like: "llama"},
	} {
		if got, err := listOf(t, text); err != nil || !reflect.DeepEqual(got, []listedModel{want}) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		schemaAgrees(t, text, true)
	}
	entry := func(members string) string { return "models: [{source: a, " + members + "}]" }
	for _, text := range []string{
		"", "org/a\norg/b\n", "- org/a\n", "models: org/a\n", "models:\n", "models: [7]", "models: [[org/a]]", "models: [null]", "models: ['']",
		"models: [org/a@]", "models: [{source: org/a@}]", "models: [org/a]\nmore: 1\n", "models:\n- repo-id: me/a\n", "models:\n- source: a\n  repo: b\n",
		"models: [{source: a/b@v1, revision: v2}]", entry("repo-id: a b"), entry("like: x, pattern-dict: y"), entry("expect: current"),
		entry("repo-id: me/a--b"), entry("repo-id: me/a..b"), entry("repo-id: me/a.git"), entry("repo-id: a/b/c"), entry("repo-id: -a"),
		entry("repo-id: a-"), entry("repo-id: " + strings.Repeat("a", 97)),
	} {
		if got, err := listOf(t, text); kindOf(err).code != exitUsage {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		schemaAgrees(t, text, false)
	}
}

// TestTypesOfMembers checks that the program and the schema know the same members with the same
// types.
func TestTypesOfMembers(t *testing.T) {
	schema, err := os.ReadFile("../../docs/models.schema.json")
	world.Must(t, err)
	var doc struct {
		Defs struct {
			Entry struct{ Properties map[string]any }
		} `json:"$defs"`
	}
	world.Must(t, json.Unmarshal(schema, &doc))
	known := new(listedModel).members()
	for _, flag := range entryFlags {
		if known[flag] == nil {
			t.Errorf("a list offers neither the flag %s nor a member of that name", flag)
		}
		for _, hint := range []string{"use --" + flag, "choose with -o or --" + flag} {
			f := (&failure{Hint: hint, hints: []string{hint}}).inList()
			if strings.Contains(f.Hint, "-"+flag) || strings.Contains(f.Hint, "-o ") || f.hints[0] != f.Hint {
				t.Errorf("the hint for a list, %q, names a flag", f.Hint)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Defs.Entry.Properties)) {
		if known[name] == nil {
			t.Errorf("the program does not know %s", name)
		}
		delete(known, name)
		good := 0
		for _, value := range []string{"word", "single", "never", "not_convertible", "true", "True", "yes", "'true'", "1.10", "7", "2026-11-24", "null", "~", "''",
			"[word]", "{word: word}"} {
			text := "models: [{source: org/a, " + name + ": " + value + "}]"
			if name == "source" {
				text = "models: [{source: " + value + "}]"
			}
			_, err := listOf(t, text)
			schemaAgrees(t, text, err == nil)
			if err == nil {
				good++
			}
		}
		if good == 0 || good > 6 {
			t.Errorf("%s takes %d of the values", name, good)
		}
	}
	if len(known) > 0 {
		t.Errorf("the schema lacks %v", known)
	}
}

func listOf(t *testing.T, text string) ([]listedModel, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.yaml")
	world.Write(t, file, []byte(text))
	return readList(file)
}

var listSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile("../../docs/models.schema.json")
})

// schemaAgrees checks that the schema accepts or refuses a list as the program does.
func schemaAgrees(t *testing.T, text string, good bool) {
	t.Helper()
	schema, err := listSchema()
	world.Must(t, err)
	var doc any
	world.Must(t, yaml.Unmarshal([]byte(text), &doc))
	if wrong := schema.Validate(doc); (wrong == nil) != good {
		t.Errorf("%q: good is %v, the schema says %v", text, good, wrong)
	}
}

// TestSlices checks that slices share out all models of a list, in any order, each to one slice,
// and that their sizes differ by at most one.
func TestSlices(t *testing.T) {
	var all []listedModel
	for i := range 203 {
		all = append(all, listedModel{Source: fmt.Sprintf("org/m%d", i%101), RepoID: fmt.Sprintf("me/t%d", i)})
	}
	mixed := slices.Clone(all)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for _, n := range []int{1, 2, 7, 20, 203, 500} {
		seen := map[string]int{}
		for i := range n {
			part := spans.Part{I: i + 1, N: n}
			mine, theirs := slice(all, part), slice(mixed, part)
			if len(mine) < len(all)/n || len(mine) > (len(all)+n-1)/n || len(mine) != len(theirs) {
				t.Errorf("slice %v has %d models of %d, in another order %d", part, len(mine), len(all), len(theirs))
			}
			for _, m := range mine {
				seen[m.RepoID]++
				if !slices.Contains(theirs, m) {
					t.Errorf("slice %v has %v in one order only", part, m)
				}
			}
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("%d slices: %s is in %d", n, id, times)
			}
		}
		if len(seen) != len(all) {
			t.Errorf("%d slices have %d models", n, len(seen))
		}
	}
}
