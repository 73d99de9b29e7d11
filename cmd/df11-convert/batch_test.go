package main

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestBatchNeverMixesTwoModels: what would put two models of a list into one target is refused
// before any work.
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
	} {
		file := filepath.Join(dir, "list.yaml")
		world.Write(t, file, []byte("models: ["+x.text+"]"))
		if _, err := readList(file, &convertFlags{target: x.flags}); (err == nil) != x.good || err != nil && kindOf(err).code != exitUsage {
			t.Errorf("%q with %+v: %v", x.text, x.flags, err)
		}
	}
}

// TestAnEntryWinsOverTheCommandLine: nothing on the command line makes an entry of a list wrong, or
// another one than it says.
func TestAnEntryWinsOverTheCommandLine(t *testing.T) {
	yes, no := true, false
	f := convertFlags{target: targetFlags{push: true, public: true, baseModel: "none"}}
	f.patternDict, f.plan.Like = "dict.json", "llama"
	for _, m := range []listedModel{{Private: &yes}, {Private: &no}, {BaseModel: "org/base"}, {Dict: "own.json"}, {Like: "qwen3"}} {
		got := m.flags(f)
		switch err := got.target.check(); {
		case err != nil:
			t.Errorf("%+v: %v", m, err)
		case m.Private != nil && got.target.private != *m.Private, m.BaseModel != "" && got.target.baseModel != m.BaseModel,
			(m.Dict != "" || m.Like != "") && (got.patternDict != m.Dict || got.plan.Like != m.Like):
			t.Errorf("%+v becomes %+v, %q, %q", m, got.target, got.patternDict, got.plan.Like)
		}
	}
}

// TestReadList: the program takes lists as editors write them, and refuses others as a mistake in
// the command line; so does the schema.
func TestReadList(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/models.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	for text, want := range map[string]*listedModel{ // nil: refused
		"\ufeffmodels:\r\n- source: org/a\r\n":                                          {Source: "org/a"},
		"models:\n- source: org/a\n  revision: v1\n  repo-id: me/a\n  refresh: never\n": {Source: "org/a", Revision: "v1", RepoID: "me/a", Refresh: "never"},
		"models:\n- source: org/a\n  like: llama\n  private: true\n  layout: single\n":  {Source: "org/a", Like: "llama", Private: &yes, Layout: "single"},
		"":                                     nil,
		"models:\n- repo-id: me/a\n":           nil,
		"models:\n- source: a\n  repo: b\n":    nil,
		"models:\n- source: a\n  refresh: x\n": nil, "models:\n- source: a\n  repo-id: a b\n": nil, "models:\n- source: a\n  private: maybe\n": nil,
		"models:\n- source: a\n  like: x\n  pattern-dict: y\n": nil,
	} {
		file := filepath.Join(t.TempDir(), "a.yaml")
		world.Write(t, file, []byte(text))
		got, err := readList(file, &convertFlags{})
		if want == nil && kindOf(err).code != exitUsage || want != nil && (err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], *want)) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		var doc any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if told := schema.Validate(doc); (told == nil) != (want != nil) {
			t.Errorf("%q: the schema says %v", text, told)
		}
	}
}
