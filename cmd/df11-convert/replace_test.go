package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestForceReplacesAResult checks that --force replaces the result of another local source:
// whatever both are, the target equals the new source afterward, and the same command without
// --force finds it up to date. Before, the run is refused, and the target keeps the earlier result.
func TestForceReplacesAResult(t *testing.T) {
	startHub(t, "hf_right", hubtest.WithUser("hf_right", hubtest.User{Name: "tester"}))
	dir := t.TempDir()
	t.Chdir(dir)
	for name, o := range map[string]hubtest.ModelOptions{
		"three":   {Layers: 3},
		"two":     {Layers: 2},
		"shards":  {Layers: 2, ShardBytes: 30_000, Extra: map[string][]byte{"tokenizer_config.json": []byte("{}")}},
		"tied":    {Layers: 1, Tied: true},
		"retuned": {Layers: 2},
	} {
		o.Hidden, o.Vocab = 32, 256
		world.Must(t, hubtest.NewLlama(uint64(len(name)), o).Write(filepath.Join(dir, name)))
	}
	for _, pair := range [][2]string{{"three", "two"}, {"two", "retuned"}, {"shards", "tied"}, {"tied", "shards"}, {"shards", "three"}} {
		before, after := pair[0], pair[1]
		name := before + "-" + after
		for at, args := range map[string][]string{
			filepath.Join(dir, "out", name): {"-o", filepath.Join(dir, "out", name)}, "tester/" + name: {"--push", "--repo-id", "tester/" + name},
		} {
			must(t, append([]string{"./" + before}, args...)...)
			ends(t, exitError, "add --force", append([]string{"./" + after}, args...)...)
			must(t, "verify", at, "--against", "./"+before, "--strict-files")
			must(t, append([]string{"./" + after, "--force"}, args...)...)
			if out := must(t, "verify", at, "--against", "./"+after, "--strict-files"); !strings.Contains(out, at+" equals "+after) {
				t.Errorf("%s: %s", name, out)
			}
			if out := must(t, append([]string{"./" + after}, args...)...); !strings.Contains(out, "up to date") {
				t.Errorf("%s: %s", name, out)
			}
		}
	}
}

// TestNoForceNextToOtherWeights checks that a run never ends well in a folder where its result
// isn't alone, and that the hint helps: files that a reader would take for weights of the result,
// and are not an earlier result's as that was made.
func TestNoForceNextToOtherWeights(t *testing.T) {
	startHub(t, "")
	dir := t.TempDir()
	source, out := filepath.Join(dir, "m"), filepath.Join(dir, "out")
	world.Must(t, smallModel(1).Write(source))
	must(t, source, "-o", out)
	edited := filepath.Join(out, "lm_head.safetensors")
	other := filepath.Join(dir, "two")
	world.Must(t, hubtest.NewLlama(2, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1, Tied: true}).Write(other))
	world.Write(t, edited, "mine")
	for range 2 {
		ends(t, exitError, "hint: move these files elsewhere", other, "-o", out, "--force")
		ends(t, exitError, "hint: move these files elsewhere", other, "-o", out)
	}
	if string(world.Read(t, edited)) != "mine" {
		t.Error("a file of the user's was changed")
	}
	world.Must(t, os.Remove(edited))
	must(t, other, "-o", out, "--force")
	must(t, "verify", out, "--against", other, "--strict-files")
}
