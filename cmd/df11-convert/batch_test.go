package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/hub"
)

// TestReadList: lists as editors write them, and what is wrong with one.
func TestReadList(t *testing.T) {
	yes := true
	tests := []struct {
		text  string
		want  []listedModel
		fails bool
	}{
		{"\ufeffmodels:\r\n- source: org/a\r\n", []listedModel{{Source: "org/a"}}, false},
		{"models:\n- source: org/a\n  repo-id: me/a\n  private: true\n", []listedModel{{Source: "org/a", RepoID: "me/a", Private: &yes}}, false},
		{"models:\n- repo-id: me/a\n", nil, true},
		{"models:\n- source: a\n  repo: b\n", nil, true},
		{"", nil, true},
	}
	for _, x := range tests {
		file := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(file, []byte(x.text), 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := readList(file, &convertFlags{})
		if (err != nil) != x.fails || !reflect.DeepEqual(got, x.want) {
			t.Errorf("%q: got %+v, %v", x.text, got, err)
		}
		if err != nil && kindOf(err).code != exitUsage {
			t.Errorf("%q: exit code %d", x.text, kindOf(err).code)
		}
	}
}

// TestBatchNeverMixesTwoModels: what would put two models of a list into one target is refused before any work.
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
		writeTo(t, file, []byte("models: ["+x.text+"]"))
		if _, err := readList(file, &convertFlags{target: x.flags}); (err == nil) != x.good || err != nil && kindOf(err).code != exitUsage {
			t.Errorf("%q with %+v: %v", x.text, x.flags, err)
		}
	}
}

// TestAnEntryWinsOverTheCommandLine: nothing on the command line makes an entry of a list wrong, or another one than it says.
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

// TestListSchema: the schema of lists takes what the program takes, and refuses what it refuses.
func TestListSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/models.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for entry, good := range map[string]bool{
		"source: org/a": true, "source: org/a\n  revision: v1\n  repo-id: me/a\n  refresh: never": true,
		"source: org/a\n  like: llama\n  private: true\n  layout: single": true,
		"repo-id: me/a": false, "source: org/a\n  repo: me/a": false, "source: org/a\n  refresh: daily": false,
		"source: org/a\n  like: x\n  pattern-dict: y": false, "source: org/a\n  repo-id: a b": false, "source: org/a\n  private: maybe": false,
	} {
		text := "models:\n- " + entry + "\n"
		file := filepath.Join(t.TempDir(), "a.yaml")
		writeTo(t, file, []byte(text))
		var doc any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		_, err := readList(file, &convertFlags{})
		if told := schema.Validate(doc); (told == nil) != good || (err == nil) != good {
			t.Errorf("%q: the schema says %v, the program %v", entry, told, err)
		}
	}
}

// TestBatchSharesClients: the models of a batch share the client of a side.
func TestBatchSharesClients(t *testing.T) {
	f := hubFlags{clients: map[string]*hub.Client{}}
	var clients []*hub.Client
	for _, side := range []string{"source", "source", "target"} {
		c, err := f.client(&ui{}, side)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	if clients[0] != clients[1] || clients[0] == clients[2] {
		t.Errorf("clients %p", clients)
	}
}
