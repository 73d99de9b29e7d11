package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestHolesInTheCache checks offline runs on a shared cache that lacks files of the commit. Those
// that a result needs are named, and the run ends; nobody needs the others.
func TestHolesInTheCache(t *testing.T) {
	startHub(t, "hf_any")
	files := hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1, ShardBytes: 30_000, ExtraFiles: true}).Files()
	files["pictures/figure.png"] = []byte("png")
	all := slices.Sorted(maps.Keys(files))
	const shard = "model-00002-of-00002.safetensors"
	for i, c := range []struct {
		name  string
		holes []string
		// without the list of the commit's files that newer Python clients write
		unlisted bool
		// the links are missing, too, as after a download of some files
		unlinked bool
		named    []string // in the error; the run succeeds without any
	}{
		{name: "whole"},
		{name: "a tokenizer", holes: []string{"tokenizer.json"}, named: []string{"tokenizer.json"}},
		{name: "never fetched", holes: []string{"tokenizer.json", "tokenizer_config.json"}, unlinked: true, named: []string{"tokenizer.json", "tokenizer_config.json"}},
		{name: "the config", holes: []string{names.Config}, unlinked: true, named: []string{names.Config}},
		{name: "a shard", holes: []string{shard}, named: []string{shard}},
		{name: "not needed", holes: []string{names.Card, "pictures/figure.png"}, unlinked: true},
		{name: "by its link", holes: []string{"tokenizer.json"}, unlisted: true, named: []string{"tokenizer.json"}},
		{name: "a shard by its link", holes: []string{shard}, unlisted: true, named: []string{shard}},
		{name: "a shard that nothing lists", holes: []string{shard}, unlisted: true, unlinked: true, named: []string{shard}},
		{name: "a config that nothing lists", holes: []string{names.Config}, unlisted: true, unlinked: true, named: []string{"doesn't list all files"}},
		{name: "all weights, and nothing lists them", holes: []string{shard, "model-00001-of-00002.safetensors", "consolidated.safetensors", "original/consolidated.00.pth", "pytorch_model.bin"},
			unlisted: true, unlinked: true, named: []string{"model-00001-of-00002.safetensors"}},
		{name: "nothing at all", holes: all, unlinked: true, named: []string{"is not in the cache"}},
	} {
		dir := t.TempDir()
		repo := filepath.Join(dir, "models--acme--small")
		var rows []string
		for name, b := range files {
			missing := slices.Contains(c.holes, name)
			blob := filepath.Join(repo, "blobs", world.Sum(b))
			rows = append(rows, fmt.Sprintf("%q: {\"size\": 130, \"blob_id\": %q, \"lfs_sha256\": %q, \"lfs_size\": %d}",
				name, strings.Repeat("a", 40), world.Sum(b), len(b)))
			if !missing {
				world.Write(t, blob, b)
			}
			link := filepath.Join(repo, "snapshots", testCommit, filepath.FromSlash(name))
			world.Must(t, os.MkdirAll(filepath.Dir(link), 0o777))
			if missing && c.unlinked {
				continue
			}
			if err := os.Symlink(blob, link); err != nil {
				t.Skip("no symbolic links here, so no shared cache as other programs write it:", err)
			}
		}
		world.Write(t, filepath.Join(repo, "refs", "main"), testCommit)
		if !c.unlisted {
			world.Write(t, filepath.Join(repo, "trees", testCommit+".json"),
				[]byte("{\"format_version\": 1, \"files\": {"+strings.Join(rows, ",\n")+"}}"))
		}
		t.Setenv("HF_HUB_CACHE", dir)
		t.Setenv("HF_HUB_OFFLINE", "1")
		out := filepath.Join(t.TempDir(), fmt.Sprint("out", i))
		code, _, stderr := program(t, "acme/small", "-o", out)
		if (code == exitOK) != (len(c.named) == 0) {
			t.Errorf("%s: exit %d: %s", c.name, code, stderr)
		}
		if len(c.named) > 0 {
			runs := [][]string{{"acme/small", "-o", out}, {"plan", "acme/small"}}
			if c.unlisted { // what isn't there may make it a DF11 model
				runs = append(runs, []string{"inspect", "acme/small"}, []string{"verify", "acme/small"},
					[]string{"decode", "acme/small", "-o", out})
			}
			for _, args := range runs {
				var doc struct{ Error struct{ Kind pipeline.Kind } }
				code, stdout, _ := program(t, append(args, "--json")...)
				if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != exitError || doc.Error.Kind != pipeline.ErrOffline {
					t.Errorf("%s: %v: exit %d, %s, %v", c.name, args, code, stdout, err)
				}
			}
			list := filepath.Join(t.TempDir(), "list.yaml")
			world.Write(t, list, "models: [{source: acme/small, expect: not_convertible}]")
			t.Chdir(t.TempDir())
			if code, stdout, stderr := program(t, "batch", list); code != exitError {
				t.Errorf("%s: a list that expects a refusal ends with %d: %s%s", c.name, code, stdout, stderr)
			}
		}
		for _, name := range c.named {
			if !strings.Contains(stderr, name) {
				t.Errorf("%s: %s isn't named: %s", c.name, name, stderr)
			}
		}
		if _, err := os.Stat(out); code != exitOK && err == nil {
			t.Errorf("%s: it made something", c.name)
		}
	}
}
