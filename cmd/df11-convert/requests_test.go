package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// asked counts requests to the API, for files with their redirects, and to the storage.
type asked struct{ api, files, storage int }

func askedOf(s *hubtest.Server) (n asked) {
	for _, q := range s.Requests() {
		switch {
		case q.Host == hubtest.HostCDN:
			n.storage++
		case strings.Contains(q.Path, "/resolve"):
			n.files++
		default:
			n.api++
		}
	}
	return n
}

// publishedHub serves a model and its conversion.
func publishedHub(t *testing.T) *hubtest.Server {
	t.Helper()
	s := startHub(t, "hf_secret")
	s.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{ShardBytes: 200_000, ExtraFiles: true}))
	must(t, "org/model", "--push", "--repo-id", "me/out")
	return s
}

// TestRequests counts the requests of commands. docs/measured.md has the table.
func TestRequests(t *testing.T) {
	s := publishedHub(t)
	s.AddModel("org/27mb", hubtest.NewLlama(1, hubtest.ModelOptions{Layers: 10, Hidden: 256, Vocab: 16_000, ShardBytes: 8_000_000}))
	list := filepath.Join(t.TempDir(), "list.yaml")
	world.Write(t, list, "models:\n  - {source: org/model, repo-id: me/out}\n")
	typo := map[string][]byte{names.Card: []byte("# A typo")}
	for _, tt := range []struct {
		args []string
		most asked
		push map[string][]byte // to the source, before
	}{
		{[]string{"plan", "org/model"}, asked{2, 7, 4}, nil},
		{[]string{"plan", "org/27mb"}, asked{2, 12, 10}, nil},
		{[]string{"org/model", "--push"}, asked{22, 40, 24}, nil},
		{[]string{"org/model", "--push", "--repo-id", "me/out"}, asked{2, 2, 0}, nil},
		{[]string{"org/model", "--push", "--repo-id", "me/like", "--like", "llama-untied"}, asked{21, 40, 24}, nil},
		{[]string{"org/model", "--push", "--repo-id", "me/like", "--like", "llama-untied"}, asked{2, 2, 0}, nil},
		{[]string{"status", list}, asked{2, 2, 0}, nil},
		{[]string{"batch", list, "--push"}, asked{2, 2, 0}, nil},
		{[]string{"org/model", "--push", "--repo-id", "me/out"}, asked{15, 31, 3}, typo},
	} {
		if tt.push != nil {
			s.Push("org/model", "main", tt.push)
		}
		s.ResetLog()
		must(t, tt.args...)
		got := askedOf(s)
		t.Log(tt.args, got)
		if got.api > tt.most.api || got.files > tt.most.files || got.storage > tt.most.storage {
			t.Errorf("%v: %+v, at most %+v", tt.args, got, tt.most)
		}
	}
}

// TestOnlyASettledTargetIsTakenByItsLists checks that a run inspects a target that differs from
// what was published or asked for in any way, and settles it.
func TestOnlyASettledTargetIsTakenByItsLists(t *testing.T) {
	edit := func(repo, path string, change func([]byte) []byte) func(*hubtest.Server) {
		return func(s *hubtest.Server) {
			b, err := s.ReadFile(repo, "main", path)
			world.Must(t, err)
			s.Push(repo, "main", map[string][]byte{path: change(b)})
		}
	}
	add := func(path string) func(*hubtest.Server) {
		return func(s *hubtest.Server) { s.Push("me/out", "main", map[string][]byte{path: []byte("{}")}) }
	}
	other := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(from), []byte(to), 1) }
	}
	flip := func(b []byte) []byte { b = bytes.Clone(b); b[len(b)-2] ^= 1; return b }
	gone := func([]byte) []byte { return nil }
	for name, tt := range map[string]struct {
		change  func(*hubtest.Server)
		flags   []string
		settled bool
	}{
		"nothing":          {settled: true},
		"a foreign file":   {change: add("notes.txt"), settled: true},
		"another version":  {change: edit("me/out", names.Manifest, other(`"version": "`, `"version": "9.`)), settled: true},
		"older rules":      {change: edit("me/out", names.Manifest, other(`"rules": 2`, `"rules": 0`))},
		"newer rules":      {change: edit("me/out", names.Manifest, other(`"rules": 2`, `"rules": 9`)), settled: true},
		"weights gone":     {change: edit("me/out", "lm_head.safetensors", gone)},
		"other weights":    {change: edit("me/out", "lm_head.safetensors", flip)},
		"config gone":      {change: edit("me/out", names.Config, gone)},
		"other config":     {change: edit("me/out", names.Config, other("llama", "lamma"))},
		"other card":       {change: edit("me/out", names.Card, flip)},
		"a copy gone":      {change: edit("me/out", "tokenizer.json", gone)},
		"another copy":     {change: edit("me/out", "tokenizer.json", flip)},
		"another manifest": {change: edit("me/out", names.Manifest, other("tokenizer.json", "tokenizer_json"))},
		"no manifest":      {change: edit("me/out", names.Manifest, gone)},
		"a journal":        {change: add(names.JournalDir + "/all.json")},
		"source's weights": {change: edit("org/model", "model-00001-of-00002.safetensors", flip)},
		"source's card":    {change: edit("org/model", names.Card, flip)},
		"another layout":   {flags: []string{"--layout", "transformers"}},
		"private":          {change: func(s *hubtest.Server) { s.Configure("org/model", hubtest.Private()) }},
		"forced":           {flags: []string{"--force"}},
		"kept here, too":   {flags: []string{"-o", filepath.Join(t.TempDir(), "out")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := publishedHub(t)
			if tt.change != nil {
				tt.change(s)
			}
			s.ResetLog()
			code, _, diag := program(t, append([]string{"org/model", "--push", "--repo-id", "me/out"}, tt.flags...)...)
			if n := askedOf(s); (n.api+n.files <= 4 && code == exitOK) != tt.settled {
				t.Errorf("%+v, exit %d: %s", n, code, diag)
			}
			if !strings.HasPrefix(name, "source's") {
				return
			}
			s.ResetLog() // what this run has made whole, the next one takes
			code, _, diag = program(t, "org/model", "--push", "--repo-id", "me/out")
			if n := askedOf(s); n.api+n.files > 4 || code != exitOK {
				t.Errorf("the next run: %+v, exit %d: %s", n, code, diag)
			}
		})
	}
}

// TestRenamedSourceKeepsItsTarget checks that a list whose sources got other names updates the targets
// of its entries, by the name of the target or without. One commit tells each target of the new name.
// Then it's settled.
func TestRenamedSourceKeepsItsTarget(t *testing.T) {
	for _, target := range []string{"", "    repo-id: tester/named\n"} {
		s := publishedHub(t)
		list := filepath.Join(t.TempDir(), "list.yaml")
		world.Write(t, list, "models:\n  - source: org/model\n"+target)
		if code, _, diag := program(t, "batch", list, "--push"); code != exitOK {
			t.Fatal(diag)
		}
		repo := "tester/model-DF11"
		if target != "" {
			repo = "tester/named"
		}
		before := s.Commits(repo, "main")
		s.Rename("org/model", "new/name")
		if code, out, diag := program(t, "batch", list, "--push"); code != exitOK || !strings.Contains(out, repo) {
			t.Fatalf("exit %d: %s%s", code, out, diag)
		}
		if n := len(s.Commits(repo, "main")) - len(before); n != 1 || len(s.Files("tester/name-DF11", "main")) > 0 {
			t.Errorf("%d commits to %s", n, repo)
		}
		if b, _ := s.ReadFile(repo, "main", names.Card); !bytes.Contains(b, []byte("base_model: new/name")) {
			t.Errorf("the card doesn't name the source:\n%s", b)
		}
		s.ResetLog()
		if code, _, diag := program(t, "batch", list, "--push"); code != exitOK || askedOf(s).files > 2 { // the manifest, and a redirect
			t.Errorf("exit %d, %+v: %s", code, askedOf(s), diag)
		}
	}
}
