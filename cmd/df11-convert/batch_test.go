package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
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
		if err != nil && exitCode(err) != exitUsage {
			t.Errorf("%q: exit code %d", x.text, exitCode(err))
		}
	}
}
