package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// TestReadList: both forms of a list, and what is wrong with one, by its line or entry.
func TestReadList(t *testing.T) {
	yes := true
	tests := []struct {
		name, text string
		want       []batchModel
		fails      bool
	}{
		{"a.txt", "# list\norg/a\norg/b me/b # mine\n\n", []batchModel{{Source: "org/a"}, {Source: "org/b", RepoID: "me/b"}}, false},
		{"a.txt", "org/a b c\n", nil, true},
		{"a.yaml", "models:\n- source: org/a\n  repo-id: me/a\n  private: true\n", []batchModel{{Source: "org/a", RepoID: "me/a", Private: &yes}}, false},
		{"a.yaml", "models:\n- repo-id: me/a\n", nil, true},
		{"a.yaml", "models:\n- source: a\n  repo: b\n", nil, true},
		{"a.yaml", "", nil, true},
	}
	for _, x := range tests {
		file := filepath.Join(t.TempDir(), x.name)
		if err := os.WriteFile(file, []byte(x.text), 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := readList(file)
		if (err != nil) != x.fails || !reflect.DeepEqual(got, x.want) {
			t.Errorf("%q: got %+v, %v", x.text, got, err)
		}
		if err != nil && kindOf(err).code != exitUsage {
			t.Errorf("%q: exit code %d", x.text, kindOf(err).code)
		}
	}
}

// TestBatchSharesClients: the models of a batch share the client of a side, and each report counts the traffic of its model
// alone.
func TestBatchSharesClients(t *testing.T) {
	srv, dir := hubtest.Start(t), t.TempDir()
	t.Setenv("HF_ENDPOINT", srv.URL)
	t.Setenv("HF_HOME", filepath.Join(dir, "home"))
	list := "models:\n"
	for _, name := range []string{"a", "b"} {
		srv.AddModel("org/"+name, hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 32, Layers: 1}))
		list += fmt.Sprintf("- {source: org/%s, output: %s}\n", name, filepath.Join(dir, name))
	}
	file := filepath.Join(dir, "list.yaml")
	writeTo(t, file, []byte(list))
	var found batchReport
	if err := json.Unmarshal([]byte(must(t, "batch", file, "--gpu", "off", "--json")), &found); err != nil {
		t.Fatal(err)
	}
	results := found.Models
	if len(results) != 2 || results[0].Report.Traffic["source"].BytesIn == 0 ||
		results[0].Report.Traffic["source"].BytesIn != results[1].Report.Traffic["source"].BytesIn {
		t.Errorf("results %+v", results)
	}
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
