package main

import (
	"bytes"
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

// TestEveryMemberOfTheManifest changes, removes, and repeats every value of a manifest. Either
// verify names the manifest or another fault, or decode restores the original's files by it, byte
// for byte: decode uses nothing that verify doesn't compare.
func TestEveryMemberOfTheManifest(t *testing.T) {
	for name, m := range map[string]*hubtest.Model{
		"shards": hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1, ShardBytes: 30_000}),
		"alias":  hubtest.NewLlama(2, hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 1, Tied: true, StoreTied: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			original, made := t.TempDir(), t.TempDir()
			world.Must(t, m.Write(original))
			must(t, original, "-o", made, "-q")
			manifest := filepath.Join(made, names.Manifest)
			named, n := 0, 0
			eachForgery(t, manifest, func(what string) {
				if n++; isNamed(t, made, original) {
					named++
				} else if why := restores(t, made, original); why != "" {
					t.Errorf("%s: verify finds no fault, but decode: %s", what, why)
				}
			})
			if isNamed(t, made, original) || named == 0 || named == n {
				t.Errorf("of %d changes, %d are named", n, named)
			}
			t.Logf("of %d changes, verify names %d; decode works with the others", n, named)
		})
	}
}

// TestEveryMemberOfTheManifestOfASource changes a DF11 model's manifest in the same ways, and converts
// the model to another layout. Either an error names the manifest or a file that it lists, or the result
// has the same bytes as from the original.
func TestEveryMemberOfTheManifestOfASource(t *testing.T) {
	m := hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1, ShardBytes: 30_000})
	original, made, want := t.TempDir(), t.TempDir(), t.TempDir()
	world.Must(t, m.Write(original))
	must(t, original, "-o", made, "-q")
	must(t, original, "-o", want, "--layout", "transformers-single", "-q")
	manifest := filepath.Join(made, names.Manifest)
	files := func(dir string) map[string][]byte {
		files := world.ReadAll(t, dir)
		maps.DeleteFunc(files, func(name string, _ []byte) bool {
			return name == names.Manifest || name == names.Card || name == names.Chart
		})
		return files
	}
	wanted := files(want)
	named, n := 0, 0
	eachForgery(t, manifest, func(what string) {
		out := filepath.Join(t.TempDir(), "out")
		defer os.RemoveAll(out)
		opt := pipeline.Options{Folder: out}
		opt.Recipe.Layout = "transformers-single"
		_, err := pipeline.Convert(t.Context(), made, opt)
		n++
		isNamed := err != nil && (strings.Contains(err.Error(), "manifest") || strings.Contains(err.Error(), "sha256"))
		switch {
		case isNamed:
			named++
		case err != nil:
			t.Errorf("%s: %v", what, err)
		case !maps.EqualFunc(files(out), wanted, bytes.Equal):
			t.Errorf("%s: other files than from the original", what)
		}
	})
	if named == 0 || named == n {
		t.Errorf("of %d changes, %d are named", n, named)
	}
	t.Logf("of %d changes, an error names %d; with the others, the result is the same", n, named)
}

// eachForgery calls try with the manifest changed in one value after another, and puts the honest one
// back at the end.
func eachForgery(t *testing.T, manifest string, try func(what string)) {
	t.Helper()
	honest := world.Read(t, manifest)
	defer world.Write(t, manifest, honest)
	var tree any
	d := json.NewDecoder(bytes.NewReader(honest))
	d.UseNumber()
	world.Must(t, d.Decode(&tree))
	variants("", tree, func(what string, changed any) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		world.Must(t, enc.Encode(changed))
		world.Write(t, manifest, b.Bytes())
		try(what)
	})
}

// isNamed reports whether verify finds a fault, or says that decode needs the original.
func isNamed(t *testing.T, made, original string) bool {
	r, err := pipeline.Verify(t.Context(), made, pipeline.VerifyOptions{Against: original})
	if err != nil {
		return true
	}
	beside := slices.ContainsFunc(r.Beside, func(f pipeline.OtherFile) bool { return f.Path == names.Manifest })
	if beside == *r.DecodesAlone || *r.DecodesAlone != (r.WhyNotAlone == "") {
		t.Errorf("beside %v, decodes alone %v: %s", r.Beside, *r.DecodesAlone, r.WhyNotAlone)
	}
	return len(r.Beside) > 0
}

// restores returns what's wrong with the weight files that decode makes, or "".
func restores(t *testing.T, made, original string) string {
	out := filepath.Join(t.TempDir(), "out")
	defer os.RemoveAll(out)
	if _, err := pipeline.Decode(t.Context(), made, pipeline.DecodeOptions{Folder: out}); err != nil {
		return err.Error()
	}
	weights := func(dir string) map[string][]byte {
		files := world.ReadAll(t, dir)
		maps.DeleteFunc(files, func(name string, _ []byte) bool { return !strings.HasSuffix(name, ".safetensors") })
		return files
	}
	if !maps.EqualFunc(weights(out), weights(original), bytes.Equal) {
		return "other files than the original's"
	}
	return ""
}

// A repeated is an object with one more member at its end.
type repeated struct {
	object map[string]any
	key    string
	value  any
}

func (r repeated) MarshalJSON() ([]byte, error) {
	object, err := json.Marshal(r.object)
	if err != nil {
		return nil, err
	}
	again, err := json.Marshal(map[string]any{r.key: r.value})
	return slices.Concat(object[:len(object)-1], []byte(","), again[1:]), err
}

// variants calls try with each JSON tree that differs from v in one value. Of a list, it
// changes the first value and the last.
func variants(at string, v any, try func(what string, changed any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			less := maps.Clone(v)
			delete(less, key)
			try(at+"/"+key+" removed", less)
			variants(at+"/"+key, v[key], func(what string, changed any) {
				more := maps.Clone(v)
				more[key] = changed
				try(what, more)
				if _, isLeaf := v[key].(map[string]any); !isLeaf {
					try(what+", repeated", repeated{v, key, changed})
				}
			})
		}
	case []any:
		if len(v) == 0 {
			return
		}
		last := v[len(v)-1]
		try(at+" emptied", []any{})
		try(at+" without its last", v[:len(v)-1])
		try(at+" with its last again", append(slices.Clip(v), last))
		try(at+" reversed", slices.Collect(func(yield func(any) bool) {
			for _, x := range slices.Backward(v) {
				_ = yield(x)
			}
		}))
		for i, x := range v {
			if i > 0 && i < len(v)-1 {
				continue
			}
			variants(fmt.Sprintf("%s/%d", at, i), x, func(what string, changed any) {
				list := slices.Clone(v)
				list[i] = changed
				try(what, list)
			})
		}
	case string:
		try(at+" longer", v+"x")
		if v != "" {
			try(at+" with another end", v[:len(v)-1]+string("01"[(v[len(v)-1]+1)%2]))
		}
	case json.Number:
		n, _ := v.Int64()
		try(at+" one more", n+1)
	}
}
