package main

import (
	"fmt"
	"os"
	"path/filepath"
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
		"moved": filepath.Join(dir, "hub", "models--acme--moved", "snapshots", testCommit),
	}
	world.Must(t, os.MkdirAll(filepath.Join(dir, "hub"), 0o777))
	world.Must(t, os.Mkdir(filepath.Join(dir, "disk"), 0o777))
	if err := os.Symlink(filepath.Join(dir, "disk"), filepath.Join(dir, "hub", "models--acme--moved")); err != nil {
		t.Skip("no symbolic links here, so no shared cache as other programs write it:", err)
	}
	now := time.Now()
	note := func(folder, name, commit string, when time.Time) {
		text := fmt.Sprintf("%s\nan-etag\n%d.25\n", commit, when.Unix()+1)
		world.Write(t, filepath.Join(at[folder], ".cache", "huggingface", "download", name+".metadata"), []byte(text))
	}
	for name, b := range files {
		blob := filepath.Join(repo, "blobs", world.Sum(b))
		world.Write(t, blob, b)
		link := filepath.Join(at["cache"], filepath.FromSlash(name))
		world.Must(t, os.MkdirAll(filepath.Dir(link), 0o777))
		world.Must(t, os.Symlink(blob, link))
		for _, folder := range []string{"download", "edited", "tuned", "plain", "moved"} {
			world.Write(t, filepath.Join(at[folder], filepath.FromSlash(name)), b)
		}
		note("download", name, testCommit, now)
		note("edited", name, testCommit, now.Add(-time.Hour)) // the file is younger
	}
	world.Write(t, filepath.Join(at["tuned"], "README.md"), []byte("---\nbase_model: acme/ancestor\n---\n"))
	world.Must(t, os.Symlink(at["cache"], at["link"]))
	return at
}

// TestLineageIsNotLostInSilence checks that card and manifest name whatever origin a local source
// shows. A stated commit is that of the files. The
// result is named after the repo of a cached snapshot, or after the folder or link.
func TestLineageIsNotLostInSilence(t *testing.T) {
	at := lineages(t)
	const base, small, download = "--base-model", "small-DF11", "download-DF11"
	for _, c := range []struct {
		name, result                   string
		args                           []string
		repo, commit, inCard, relation string
	}{
		{"the cache", small, []string{at["cache"]}, "acme/small", testCommit, "acme/small", "quantized"},
		{"the cache, moved to another disk", "moved-DF11", []string{at["moved"]}, "acme/moved", testCommit, "acme/moved", "quantized"},
		{"the cache, renamed", small, []string{at["cache"], base, "acme/moved"}, "acme/moved", "", "acme/moved", "quantized"},
		{"the cache, denied", small, []string{at["cache"], base, "none"}, "", "", "", ""},
		{"a link to the cache", "my-copy-DF11", []string{at["link"]}, "acme/small", testCommit, "acme/small", "quantized"},
		{"a download", download, []string{at["download"]}, "", "", "", ""},
		{"a download, named", download, []string{at["download"], base, "acme/small"}, "acme/small", testCommit, "acme/small", "quantized"},
		{"an edited download", "edited-DF11", []string{at["edited"], base, "acme/small"}, "acme/small", "", "acme/small", "quantized"},
		{"tuned from a base", "tuned-DF11", []string{at["tuned"]}, "", "", "acme/ancestor", "finetune"},
		{"nothing", "plain-DF11", []string{at["plain"]}, "", "", "", ""},
	} {
		t.Chdir(t.TempDir())
		code, _, stderr := program(t, c.args...)
		if code != exitOK {
			t.Fatalf("%s: exit %d: %s", c.name, code, stderr)
		}
		m, err := metadata.ParseManifest(world.Read(t, filepath.Join(c.result, names.Manifest)), 0)
		world.Must(t, err)
		if m.Source.Repo != c.repo || m.Source.Commit != c.commit {
			t.Errorf("%s: the manifest names %q at %q", c.name, m.Source.Repo, m.Source.Commit)
		}
		text := world.Read(t, filepath.Join(c.result, names.Card))
		if n := strings.Count(string(text), "said to be"); n != choose(c.repo == "", 0, 2) {
			t.Errorf("%s: it wasn't compared with %q: the card says so %d times", c.name, c.repo, n)
		}
		card, err := metadata.ParseFrontMatter(text)
		world.Must(t, err)
		got, relation := strings.Join(card.BaseModel, ""), strings.Join(card.Relation, "")
		if got != c.inCard || relation != c.relation {
			t.Errorf("%s: the card names %q (%s)", c.name, got, relation)
		}
	}
}

// TestFoldersArePublishedPrivately checks that no trace on a disk opens the target of a local source:
// neither a cache's path, nor download notes, nor a link, nor a base model that its card names.
func TestFoldersArePublishedPrivately(t *testing.T) {
	srv := startHub(t, "hf_any")
	srv.AddModel("acme/ancestor", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1}))
	for name, folder := range lineages(t) {
		must(t, folder, "--push", "--repo-id", "tester/"+name)
		if !srv.IsPrivate("tester/" + name) {
			t.Errorf("%s: the target is public", name)
		}
		must(t, folder, "--push", "--repo-id", "tester/open-"+name, "--public")
		if srv.IsPrivate("tester/open-" + name) {
			t.Errorf("%s: --public made a private target", name)
		}
		ends(t, exitError, "--public", folder, "--push", "--repo-id", "tester/open-"+name)
	}
}
