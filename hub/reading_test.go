package hub_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

func TestSmallFilesAndNames(t *testing.T) {
	w := newWorld(t, 100)
	files := map[string][]byte{"config.json": []byte("{}"), "a b/#x?.txt": []byte("odd"), "empty.txt": {}, "dir/100%.bin": []byte("p")}
	commit := w.srv.AddRepo("org/names", files)
	info, err := w.Info(t.Context(), "org/names", "")
	if err != nil || info.SHA != commit {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := w.ReadFile(t.Context(), hub.FileRef{Repo: "org/names", Commit: commit, Path: name}, 1000)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		ref, ok := info.File(name)
		if !ok || ref.Size != int64(len(want)) {
			t.Errorf("%s: %+v", name, ref)
			continue
		}
		s, err := w.Stream(t.Context(), ref, 0, ref.Size)
		must(t, err)
		if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, want) {
			t.Errorf("stream %s: %q, %v", name, got, err)
		}
		s.Close()
	}
	if _, err := w.ReadFile(t.Context(), hub.FileRef{Repo: "org/names", Commit: commit, Path: "none"}, 10); !errors.Is(err, hub.ErrEntryNotFound) {
		t.Error(err)
	}
}

func TestRenamedRepo(t *testing.T) {
	w := newWorld(t, 3000)
	w.srv.Rename(source, "org/new-name")
	info, err := w.Info(t.Context(), source, "main")
	if err != nil || info.ID != "org/new-name" || info.SHA != w.commit {
		t.Fatalf("%+v, %v", info, err)
	}
	if err := w.stream(t); err != nil { // by its old name
		t.Error(err)
	}
}

// TestInfoCompletesSizesFromTheTree checks hubs that don't send all sizes with the info.
func TestInfoCompletesSizesFromTheTree(t *testing.T) {
	w := newWorldOn(t, hubtest.Start(t, hubtest.WithWays(hubtest.Ways{NoSizes: true}), hubtest.WithPageSize(2)), 3000)
	info, err := w.Info(t.Context(), source, "")
	must(t, err)
	large, _ := info.File(weight)
	small, _ := info.File("config.json")
	if large != w.ref() || small.Size != 8 || small.BlobID == "" || len(info.Files) != 4 || w.srv.Count("GET", "*") != 3 {
		t.Errorf("%d requests, %+v", w.srv.Count("GET", "*"), info.Files)
	}
}

func TestTreePages(t *testing.T) {
	w := newWorldOn(t, hubtest.Start(t, hubtest.WithPageSize(2)), 3000)
	tree, err := w.Tree(t.Context(), source, "main")
	if err != nil || tree[weight].SHA256 != shared.Sum(w.data) || tree[weight].Size != 3000 || tree["config.json"].BlobID == "" {
		t.Fatalf("%+v, %v", tree, err)
	}
	pages := w.srv.Count("GET", "/api/models/*/tree/*")
	if pages < 2 {
		t.Errorf("%d pages", pages)
	}
}

// TestLinksForOneRangeCostOneLookEach checks that the hub is asked once for each range if no link
// serves twice.
func TestLinksForOneRangeCostOneLookEach(t *testing.T) {
	w := newWorldOn(t, hubtest.Start(t, hubtest.WithLinksForOnce()), 10_000)
	must(t, w.stream(t))
	if w.nHeads() != 3 || w.nGets() > 3+3 || w.clock.Waited() > briefly {
		t.Errorf("%d heads, %d gets, waited %v", w.nHeads(), w.nGets(), w.clock.Waited())
	}
}

// TestEveryRequestForBytesIsRanged checks that no request asks for a whole file, because storage
// hosts refuse huge ones.
func TestEveryRequestForBytesIsRanged(t *testing.T) {
	w := newWorld(t, 10_000)
	must(t, w.stream(t))
	if _, err := w.ReadRange(t.Context(), w.ref(), 0, 10_000); err != nil {
		t.Error(err)
	}
	if _, err := w.ReadFile(t.Context(), hub.FileRef{Repo: source, Commit: w.commit, Path: weight}, 10_000); err != nil {
		t.Error(err)
	}
	for _, q := range w.srv.Requests() {
		if q.Method == "GET" && strings.Contains(q.Path, weight) || q.Host == hubtest.HostCDN {
			if q.Header.Get("Range") == "" || q.Header.Get("Accept-Encoding") != "identity" {
				t.Errorf("%s %s without a range, or open to compression", q.Method, q.Path)
			}
		}
	}
	if w.nGets() != 5 {
		t.Errorf("%d gets", w.nGets())
	}
}
