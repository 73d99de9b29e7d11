package model

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestCopiesAreTheModelsOwn checks, before any work, that each file to publish is a file of the
// source, or in a download cache, and no LFS pointer.
func TestCopiesAreTheModelsOwn(t *testing.T) {
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	pointer := lfsPointer + "v1\noid sha256:" + hash + "\nsize 11422654\n"
	for name, c := range map[string]struct {
		file    string
		target  string // of a link, relative to the folder above the source; "" for a file
		content string
		refused string // part of the error; "" if all is well
	}{
		"pointer":                {"tokenizer.json", "", pointer, "Git LFS pointer"},
		"linked pointer":         {"tokenizer.json", "models--a--b/blobs/" + hash, pointer, "Git LFS pointer"},
		"large text like one":    {"tokenizer.json", "", pointer + strings.Repeat(" ", 1024), ""},
		"link outside":           {"vocab.txt", "secret", "password", `outside the source`},
		"config outside":         {"config.json", "secret.json", `{"model_type":"llama","architectures":["LlamaForCausalLM"]}`, `outside the source`},
		"link inside":            {"vocab.txt", "model/tokenizer.json", "", ""},
		"cache":                  {"vocab.txt", "models--a--b/blobs/" + hash, "x", ""},
		"cache of all repos":     {"vocab.txt", "blobs/9f/" + hash, "x", ""},
		"blob of Git":            {"vocab.txt", "models--a--b/blobs/" + hash[:40], "x", ""},
		"blob of a container":    {"vocab.txt", "blobs/sha256/" + hash, "x", `outside the source`},
		"no blob in the cache":   {"vocab.txt", "blobs/secret", "x", `outside the source`},
		"unused file outside":    {"old.bin", "secret", "x", ""},
		"weights somewhere else": {"model.safetensors", "disk2/model.safetensors", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			above := t.TempDir()
			dir := filepath.Join(above, "model")
			files := hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2}).Files()
			world.WriteAll(t, dir, files)
			file := filepath.Join(dir, c.file)
			if c.target == "" {
				world.Write(t, file, c.content)
			} else {
				target := filepath.Join(above, filepath.FromSlash(c.target))
				_ = os.Remove(file)
				switch {
				case c.content != "":
					world.Write(t, target, c.content)
				case c.file == "model.safetensors":
					world.Write(t, target, files[c.file])
				}
				if err := os.Symlink(target, file); err != nil {
					t.Skip("no links here:", err)
				}
			}
			src, m, err := OpenLocal(t.Context(), dir, plan.Options{}, 0)
			must(t, err)
			defer src.Close()
			p, err := plan.New(t.Context(), m.Listing, plan.Options{})
			must(t, err)
			err = m.CheckCopies(p)
			var refused *plan.RefusedError
			if c.refused == "" && err != nil || c.refused != "" &&
				(!errors.As(err, &refused) || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), `"`+c.file+`"`) || refused.Hint.String() == "") {
				t.Errorf("got %v, want %q", err, c.refused)
			}
		})
	}
}
