package pipeline_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/pipeline"
)

// withToken is the small model with one more large file that is carried over.
func withToken() *hubtest.Model {
	return hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000, Extra: map[string][]byte{
		"df11.png": []byte("a picture"), "tokenizer.model": bytes.Repeat([]byte("token"), 5000)}})
}

// copyWorld is a hub that can copy large files between repos.
func copyWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, withToken(), hubtest.WithXetHashes(), hubtest.WithLFSThreshold(20_000))
}

const copyRoute = "/api/models/*/lfs-files/duplicate"

// TestCopiesFallBack: a copy inside the hub that is refused, fails, or is promised and not made costs an upload and
// nothing else.
func TestCopiesFallBack(t *testing.T) {
	w := copyWorld(t)
	w.mustConvert(t)
	want := w.target()
	if w.Count("POST", copyRoute) != 1 || w.Count("GET", "*/resolve/*/tokenizer.model") != 0 {
		t.Error("the file was not copied inside the hub")
	}
	for name, action := range map[string]hubtest.Action{
		"no such route": hubtest.Error(404, "", "Not Found"),
		"not allowed":   hubtest.Error(403, "", "Forbidden"),
		"broken":        hubtest.Error(500, "", "Internal Error"),
		"cut off":       hubtest.Reset(),
		"refused":       hubtest.EditJSON(func(any) any { return failedCopies(want["tokenizer.model"].SHA256) }),
		"not made":      hubtest.Status(200, hubtest.Header{"Content-Type": "application/json"}, `{"failed":[]}`),
	} {
		t.Run(name, func(t *testing.T) {
			w := copyWorld(t)
			w.Inject(hubtest.Fault{Name: "copy", Method: "POST", Path: copyRoute, Times: always, Action: action})
			w.mustConvert(t)
			sameFiles(t, w.target(), want)
			if w.FaultsActed("copy") == 0 {
				t.Error("the fault did not act")
			}
		})
	}
}

func failedCopies(sha256 string) any {
	return map[string]any{"failed": []any{map[string]any{"sha256": sha256, "error": "other region"}}}
}

// TestCorruptCopiedFile: wrong bytes of a file that is carried over are noticed by its hash, and read again.
func TestCorruptCopiedFile(t *testing.T) {
	for _, times := range []int{1, always} {
		w := newWorld(t, withToken(), hubtest.WithLFSThreshold(20_000))
		token, err := w.ReadFile(sourceRepo, "main", "tokenizer.model")
		if err != nil {
			t.Fatal(err)
		}
		w.Inject(hubtest.Fault{Name: "corrupt", Host: hubtest.HostCDN, Times: times, Path: "*" + w.Files(sourceRepo, "main")["tokenizer.model"].SHA256})
		_, err = w.convert(t.Context(), t, t.TempDir())
		if w.FaultsActed("corrupt") == 0 {
			t.Fatal("the fault did not act")
		}
		if times == always {
			if err == nil {
				t.Error("a damaged file was carried over")
			}
			w.unfinished(t)
			continue
		}
		if got, readErr := w.ReadFile(targetRepo, "main", "tokenizer.model"); err != nil || readErr != nil || !bytes.Equal(got, token) {
			t.Errorf("%v, %v", err, readErr)
		}
	}
}

// TestForeignPartials: what other programs have begun in the shared cache is neither used nor touched.
func TestForeignPartials(t *testing.T) {
	w, _, spoil := cacheWorld(t, true)
	var partial string
	copied := spoil("model-00002-of-00004.safetensors", func(b []byte) []byte { return b })
	partial = copied + ".0a1b2c3d.incomplete"
	writeFile(t, partial, []byte("half a file"))
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	w.mustConvert(t)
	checkPublished(t, w)
	if got := readFile(t, partial); string(got) != "half a file" {
		t.Errorf("the foreign partial is now %q", got)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(copied), ".*"))
	if _, statErr := os.Stat(copied); err != nil || statErr != nil || len(left) > 0 {
		t.Errorf("the copy: %v; left: %v, %v", statErr, left, err)
	}
}

// TestCacheThatCannotBeWritten: the error names the cache, and nothing is half there.
func TestCacheThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, small())
	cache := filepath.Join(t.TempDir(), "file")
	writeFile(t, cache, nil)
	w.change = append(w.change, func(o *pipeline.Options) { o.Source = pipeline.KeepWeights(o.Source) })
	w.hub = append(w.hub, func(o *hub.Options) { o.CacheDir = cache })
	_, err := w.convert(t.Context(), t, t.TempDir())
	if e := (*pipeline.CacheError)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), "shared cache") || !strings.Contains(err.Error(), cache) {
		t.Errorf("error %v", err)
	}
	w.unfinished(t)
	noGoroutines(t)
}
