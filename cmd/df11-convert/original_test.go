package main

import (
	"bytes"
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

const (
	testCommit = "0123456789abcdef0123456789abcdef01234567"
	smallShard = "model-00001-of-00002.safetensors"
)

// smallModel returns a model of the shape that these tests use.
func smallModel(seed uint64) *hubtest.Model {
	return hubtest.NewLlama(seed, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 1, ShardBytes: 30_000, Extra: hubtest.OwnPicture})
}

// copies makes acme/small, at that commit, in each of the ways in which a model gets onto a disk,
// and returns the folders by name. In some, the traces of its origin are wrong.
func copies(t *testing.T, commit string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	files := smallModel(1).Files()
	repo := filepath.Join(dir, "hub", "models--acme--small")
	at := map[string]string{
		"cache": filepath.Join(repo, "snapshots", commit), "link": filepath.Join(dir, "my-copy"),
		"download": filepath.Join(dir, "download"), "edited": filepath.Join(dir, "edited"),
		"tuned": filepath.Join(dir, "tuned"), "plain": filepath.Join(dir, "plain"), "cloned": filepath.Join(dir, "cloned"),
		"stale": filepath.Join(dir, "hub", "models--acme--other", "snapshots", testCommit),
	}
	world.Must(t, os.MkdirAll(filepath.Join(dir, "hub"), 0o777))
	if err := os.Symlink(at["cache"], at["link"]); err != nil {
		t.Skip("no symbolic links here, so no shared cache as other programs write it:", err)
	}
	for name, b := range files {
		blob := filepath.Join(repo, "blobs", world.Sum(b))
		world.Write(t, blob, b)
		link := filepath.Join(at["cache"], filepath.FromSlash(name))
		world.Must(t, os.MkdirAll(filepath.Dir(link), 0o777))
		world.Must(t, os.Symlink(blob, link))
		for _, folder := range []string{"download", "edited", "tuned", "plain", "cloned", "stale"} {
			world.Write(t, filepath.Join(at[folder], filepath.FromSlash(name)), b)
		}
		note := fmt.Appendf(nil, "%s\nan-etag\n%d.25\n", commit, time.Now().Unix()+1)
		for _, folder := range []string{"download", "edited"} {
			world.Write(t, filepath.Join(at[folder], ".cache", "huggingface", "download", name+".metadata"), note)
		}
	}
	b := bytes.Clone(files[smallShard]) // its name, size, header, and notes are right
	b[len(b)-1] ^= 1
	world.Write(t, filepath.Join(at["edited"], smallShard), b)
	world.Write(t, filepath.Join(at["tuned"], names.Card), "---\nbase_model: acme/ancestor\n---\n")
	world.Write(t, filepath.Join(at["cloned"], ".git", "config"), "[remote \"origin\"]\n\turl = https://huggingface.co/acme/small\n")
	return at
}

// TestOriginalsAreCompared checks that card and manifest name a repo as the original of a local
// source only if --original says so and every weight file has the SHA-256 that the Hub states.
// Otherwise, a run with --original ends before it makes or publishes anything. The result is named
// after the repo of a cached snapshot, or after the folder or link. The public original opens the
// target.
func TestOriginalsAreCompared(t *testing.T) {
	srv := startHub(t, "hf_any")
	old := srv.AddModel("acme/small", smallModel(1))
	files := smallModel(2).Files()
	newest := srv.Push("acme/small", "main", files) // what a download without notes isn't
	current := srv.AddModel("acme/copy", smallModel(1))
	srv.AddModel("acme/ancestor", smallModel(1))
	srv.AddModel("acme/other", smallModel(3))
	srv.AddModel("acme/secret", smallModel(1))
	srv.Configure("acme/secret", hubtest.Private())
	single := smallModel(1).Files()
	srv.AddRepo("acme/renamed", map[string][]byte{"model-1.safetensors": single[smallShard], names.Config: single[names.Config]})
	at := copies(t, old)
	for i, c := range []struct {
		folder, original string
		repo, commit     string // in manifest and card
		public           bool
		wrong            string // how the run ends
	}{
		{folder: "cache"}, {folder: "link"}, {folder: "download"}, {folder: "tuned"}, {folder: "plain"}, {folder: "cloned"},
		{folder: "cache", original: "acme/small", repo: "acme/small", commit: old, public: true},
		{folder: "link", original: "acme/small", repo: "acme/small", commit: old, public: true},
		{folder: "download", original: "acme/small", repo: "acme/small", commit: old, public: true},
		{folder: "download", original: "acme/copy", repo: "acme/copy", commit: current, public: true}, // which lacks the noted commit
		{folder: "plain", original: "acme/small", wrong: "aren't those of acme/small@" + newest[:12]},
		{folder: "plain", original: "acme/small@" + old, repo: "acme/small", commit: old, public: true},
		{folder: "plain", original: "acme/copy", repo: "acme/copy", commit: current, public: true},
		{folder: "stale", original: "acme/copy", repo: "acme/copy", commit: current, public: true},
		{folder: "stale", original: "acme/other", wrong: "aren't those of acme/other"},
		{folder: "tuned", original: "acme/copy", repo: "acme/copy", commit: current, public: true},
		{folder: "plain", original: "acme/secret", repo: "acme/secret"},
		{folder: "edited", original: "acme/small", wrong: smallShard + " has another SHA-256"},
		{folder: "edited", original: "acme/small@" + old, wrong: smallShard + " has another SHA-256"},
		{folder: "plain", original: "acme/renamed", wrong: "aren't those of acme/renamed"},
		{folder: "plain", original: "acme/none", wrong: "acme/none"},
	} {
		t.Run(fmt.Sprintf("%s of %s", c.folder, c.original), func(t *testing.T) {
			t.Chdir(t.TempDir())
			target := fmt.Sprintf("tester/of-%d", i)
			args := []string{at[c.folder], "--push", "--repo-id", target, "-o", "out"}
			if c.original != "" {
				args = append(args, "--original", c.original)
			}
			srv.ResetLog()
			code, _, stderr := program(t, args...)
			if c.wrong != "" {
				if code == exitOK || !strings.Contains(stderr, c.wrong) || srv.Count("POST", "") > 0 {
					t.Errorf("exit %d: %s", code, stderr)
				}
				if _, err := os.Stat("out"); err == nil {
					t.Error("it made something")
				}
				return
			}
			if code != exitOK {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			m, err := metadata.ParseManifest(world.Read(t, filepath.Join("out", names.Manifest)), 0)
			world.Must(t, err)
			if m.Source.Repo != c.repo || c.commit != "" && m.Source.Commit != c.commit {
				t.Errorf("the manifest names %q at %q", m.Source.Repo, m.Source.Commit)
			}
			text := world.Read(t, filepath.Join("out", names.Card))
			if claims := strings.Contains(string(text), "All 2 of its weight files"); claims != (c.repo != "") {
				t.Errorf("the card claims equality: %v", claims)
			}
			card, err := metadata.ParseFrontMatter(text)
			world.Must(t, err)
			base, relation := c.repo, "quantized"
			if c.repo == "" {
				base, relation = "", ""
				if c.folder == "tuned" {
					base, relation = "acme/ancestor", "finetune"
				}
			}
			if got := strings.Join(card.BaseModel, ""); got != base || strings.Join(card.Relation, "") != relation {
				t.Errorf("the card names %q (%s)", got, card.Relation)
			}
			if srv.IsPrivate(target) == c.public {
				t.Errorf("the target is public: %v", !c.public)
			}
			if c.repo == "" {
				ends(t, exitError, "--against", "verify", target)
				must(t, at[c.folder], "--push", "--repo-id", target+"-open", "--public")
				if srv.IsPrivate(target + "-open") {
					t.Error("--public made a private target")
				}
				ends(t, exitError, "--public", at[c.folder], "--push", "--repo-id", target+"-open")
				return
			}
			must(t, "verify", target)
		})
	}
	t.Chdir(t.TempDir())
	must(t, at["cache"], "-o", "offline", "--original", "acme/small")
	t.Setenv("HF_HUB_OFFLINE", "1")
	code, _, stderr := program(t, at["cache"], "--original", "acme/small")
	m, err := metadata.ParseManifest(world.Read(t, filepath.Join("small-DF11", names.Manifest)), 0)
	if world.Must(t, err); code != exitOK || m.Source.Repo != "" || !strings.Contains(stderr, "not compared with acme/small") {
		t.Errorf("offline: exit %d, %q: %s", code, m.Source.Repo, stderr)
	}
}
