package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

const testCommit = "0123456789abcdef0123456789abcdef01234567"

// lineages makes one model in each of the ways in which a source gets onto a disk, and returns the
// folders by name.
func lineages(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	files := hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1, ShardBytes: 30_000}).Files()
	repo := filepath.Join(dir, "hub", "models--acme--small")
	at := map[string]string{
		"cache": filepath.Join(repo, "snapshots", testCommit), "link": filepath.Join(dir, "my-copy"),
		"download": filepath.Join(dir, "download"), "edited": filepath.Join(dir, "edited"),
		"tuned": filepath.Join(dir, "tuned"), "plain": filepath.Join(dir, "plain"),
	}
	now := time.Now()
	note := func(folder, name, commit string, when time.Time) {
		text := fmt.Sprintf("%s\nan-etag\n%d.25\n", commit, when.Unix()+1)
		world.Write(t, filepath.Join(at[folder], ".cache", "huggingface", "download", name+".metadata"), []byte(text))
	}
	for name, b := range files {
		sum := sha256.Sum256(b)
		blob := filepath.Join(repo, "blobs", hex.EncodeToString(sum[:]))
		world.Write(t, blob, b)
		link := filepath.Join(at["cache"], filepath.FromSlash(name))
		world.Must(t, os.MkdirAll(filepath.Dir(link), 0o777))
		if err := os.Symlink(blob, link); err != nil {
			t.Skip("no symbolic links here, so no shared cache as other programs write it:", err)
		}
		for _, folder := range []string{"download", "edited", "tuned", "plain"} {
			world.Write(t, filepath.Join(at[folder], filepath.FromSlash(name)), b)
		}
		note("download", name, testCommit, now)
		note("edited", name, testCommit, now.Add(-time.Hour)) // the file is younger
	}
	world.Write(t, filepath.Join(at["tuned"], "README.md"), []byte("---\nbase_model: acme/ancestor\n---\n"))
	world.Must(t, os.Symlink(at["cache"], at["link"]))
	return at
}

// lineage converts a folder and returns its origin according to card and manifest.
func lineage(t *testing.T, args ...string) (source metadata.Source, card metadata.FrontMatter, stderr string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := program(t, append(slices.Clone(args), "-o", out)...)
	if code != exitOK {
		t.Fatalf("%v: exit %d: %s%s", args, code, stdout, stderr)
	}
	var m metadata.Manifest
	world.Must(t, json.Unmarshal(world.Read(t, filepath.Join(out, names.Manifest)), &m))
	text := world.Read(t, filepath.Join(out, "README.md"))
	if n := strings.Count(string(text), "said to be"); n != 0 && m.Source.Repo == "" || n != 2 && m.Source.Repo != "" {
		t.Errorf("%v: from %s, which wasn't compared with it: the card says so %d times", args, m.Source.Repo, n)
	}
	card, err := metadata.ParseFrontMatter(text)
	world.Must(t, err)
	return m.Source, card, stderr
}

// TestLineageIsNotLostInSilence checks that card and manifest name whatever origin a local source
// shows. If it shows none, a warning names --base-model. A stated commit is that of the files.
func TestLineageIsNotLostInSilence(t *testing.T) {
	t.Parallel()
	at := lineages(t)
	const base = "--base-model"
	for _, c := range []struct {
		name                           string
		args                           []string
		repo, commit, inCard, relation string
		warned                         bool
	}{
		{"the cache", []string{at["cache"]}, "acme/small", testCommit, "acme/small", "quantized", false},
		{"the cache, renamed", []string{at["cache"], base, "acme/moved"}, "acme/moved", "", "acme/moved", "quantized", false},
		{"the cache, denied", []string{at["cache"], base, "none"}, "", "", "", "", false},
		{"a download", []string{at["download"]}, "", "", "", "", true},
		{"a download, named", []string{at["download"], base, "acme/small"}, "acme/small", testCommit, "acme/small", "quantized", false},
		{"an edited download", []string{at["edited"], base, "acme/small"}, "acme/small", "", "acme/small", "quantized", false},
		{"tuned from a base", []string{at["tuned"]}, "", "", "acme/ancestor", "finetune", false},
		{"nothing", []string{at["plain"]}, "", "", "", "", true},
	} {
		source, card, stderr := lineage(t, c.args...)
		if source.Repo != c.repo || source.Commit != c.commit {
			t.Errorf("%s: the manifest names %q at %q", c.name, source.Repo, source.Commit)
		}
		got, relation := strings.Join(card.BaseModel, ""), strings.Join(card.Relation, "")
		if got != c.inCard || relation != c.relation {
			t.Errorf("%s: the card names %q (%s)", c.name, got, relation)
		}
		if warned := strings.Contains(stderr, "--base-model"); warned != c.warned {
			t.Errorf("%s: %s", c.name, stderr)
		}
	}
}

// TestResultIsNotNamedAfterACommit checks that the result of a cached snapshot is named after its
// repo, and that of a folder or link after that.
func TestResultIsNotNamedAfterACommit(t *testing.T) {
	at := lineages(t)
	t.Chdir(t.TempDir())
	for name, source := range map[string]string{"small-DF11": at["cache"], "my-copy-DF11": at["link"], "plain-DF11": at["plain"]} {
		must(t, source)
		if _, err := os.Stat(filepath.Join(name, "config.json")); err != nil {
			t.Error(err)
		}
	}
}

// TestPushAsksForLineage checks that the program publishes nothing of unknown origin until the user
// names the origin or says that there's none. Before that, it sends the hub no request.
func TestPushAsksForLineage(t *testing.T) {
	at := lineages(t)
	srv := startHub(t, "hf_any")
	ends(t, exitUsage, "--base-model none", at["plain"], "--push", "--repo-id", "me/plain")
	if n := srv.Count("", ""); n > 0 {
		t.Errorf("%d requests", n)
	}
	must(t, at["plain"], "--push", "--repo-id", "tester/plain", "--base-model", "none")
	must(t, at["cache"], "--push", "--repo-id", "tester/cached")
	must(t, at["tuned"], "--push", "--repo-id", "tester/tuned")
	srv.AddModel("acme/ancestor", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1}))
	ends(t, exitError, "--against", "verify", "tester/tuned") // its ancestor is not its original
	ends(t, exitError, "the original is acme/small@"+testCommit, "verify", "tester/cached")
}
