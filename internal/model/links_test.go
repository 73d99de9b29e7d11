package model

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestBrokenLinks checks that a link to something that isn't there stops a conversion only if the
// model needs the file. The error names both ends. Others stay in the folder, and so do pipes and
// rings of links.
func TestBrokenLinks(t *testing.T) {
	for name, needed := range map[string]bool{
		"tokenizer.json": true, "config.json": true, "model.safetensors.index.json": true, "generation_config.json": true,
		"model-00001-of-00004.safetensors": true, "README.md": true,
		"figure.png": false, "LICENSE": false, "notes.txt": false, "data/x.bin": false, "train.py": false,
	} {
		dir, _ := shards(t)
		world.Write(t, filepath.Join(dir, "README.md"), []byte("![a](figure.png)\n"))
		link := filepath.Join(dir, name)
		_ = os.Remove(link)
		must(t, os.MkdirAll(filepath.Dir(link), 0o755))
		if err := os.Symlink("gone/target", link); err != nil {
			t.Skip("no links here:", err)
		}
		must(t, os.Symlink("ring", filepath.Join(dir, "ring")))
		src, m, err := OpenLocal(t.Context(), dir, plan.Options{}, 0)
		var p *plan.Plan
		if err == nil {
			defer src.Close()
			p, err = plan.New(t.Context(), m.Listing, plan.Options{})
		}
		if err == nil {
			err = m.CheckCopies(p)
		}
		switch {
		case needed && (err == nil || !strings.Contains(err.Error(), `"`+name+`" is a link to "gone/target", which isn't there`)):
			t.Errorf("%s: the error is %v", name, err)
		case !needed && err != nil:
			t.Errorf("%s: %v", name, err)
		case !needed && (!slices.Contains(p.Stay, name) || !slices.Contains(p.Stay, "ring")):
			t.Errorf("%s isn't named: %v", name, p.Stay)
		}
	}
}

// TestLinksToPrivateFiles checks that a plan copies no link to a file of the folder that it
// wouldn't copy by that file's own name, also through other links, and that it names the link as
// one that stays or is left out.
func TestLinksToPrivateFiles(t *testing.T) {
	dir, _ := shards(t)
	world.WriteAll(t, dir, map[string][]byte{".env": []byte("secret"), ".git/config": []byte("secret"), "runs/keys.json": []byte("{}"),
		".gitignore": []byte("runs/\n*.draft\n"), "terms.draft": []byte("secret"), "words.json": []byte("{}"), "result/df11-manifest.json": []byte("{}"),
		"result/vocab.json": []byte("{}")})
	must(t, os.Symlink(".env", filepath.Join(dir, "other")))
	want := map[string]bool{}
	for link, to := range map[string]string{
		"vocab.txt": ".env", "LICENSE": ".git/config", "merges.txt": "runs/keys.json", "NOTICE": "terms.draft", "bpe.codes": "other",
		"vocab.json": "result/vocab.json", "added_tokens.json": "words.json", "special_tokens_map.json": filepath.Join(dir, "words.json"),
	} {
		want[link] = filepath.Base(to) == "words.json"
		_ = os.Remove(filepath.Join(dir, link))
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no links here:", err)
		}
	}
	src, m, err := OpenLocal(t.Context(), dir, plan.Options{}, 0)
	must(t, err)
	defer src.Close()
	p, err := plan.New(t.Context(), m.Listing, plan.Options{})
	must(t, err)
	must(t, m.CheckCopies(p))
	for link, want := range want {
		isOf := func(f plan.File) bool { return f.Path == link }
		stays := slices.Contains(p.Stay, link) || slices.ContainsFunc(p.NotCopied, func(s plan.Skipped) bool { return s.Path == link })
		if got := slices.ContainsFunc(p.AllCopied(), isOf); got != want || stays == want {
			t.Errorf("%s is copied: %v; it's named as one that isn't: %v", link, got, stays)
		}
	}
}

// TestOddInDF11 checks that a broken link in a DF11 folder is damage only in place of a file that
// the model needs. In a folder that holds no DF11 model it doesn't count as damage at all.
func TestOddInDF11(t *testing.T) {
	link := func(dir, name string) {
		t.Helper()
		file := filepath.Join(dir, name)
		_ = os.Remove(file)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		if err := os.Symlink("/gone", file); err != nil {
			t.Skip("no links here:", err)
		}
	}
	for name, needed := range map[string]bool{
		"config.json": true, "df11-manifest.json": true, "model.safetensors": true, "extra.safetensors": true,
		"tokenizer.json": true, "generation_config.json": true, "pytorch_model.bin": true,
		"old": false, "notes.txt": false, "README.md": false, "LICENSE": false, "sub/old": false, ".env": false, "figure.png": false,
	} {
		dir := t.TempDir()
		must(t, os.CopyFS(dir, os.DirFS(filepath.Join(goldenModel, "multi"))))
		link(dir, name)
		d, err := OpenDF11Local(t.Context(), dir, 0)
		var invalid *InvalidError
		switch {
		case needed && (!errors.As(err, &invalid) || !strings.Contains(err.Error(), `"`+name+`" is a link to "/gone"`)):
			t.Errorf("%s: the error is %v", name, err)
		case !needed && err != nil:
			t.Errorf("%s: %v", name, err)
		case !needed:
			if odd := d.Odd(); len(odd) != 1 || odd[0] != name {
				t.Errorf("%s: named are %q", name, odd)
			}
			d.Close()
		}
		plain, _ := shards(t)
		link(plain, name)
		if _, err = OpenDF11Local(t.Context(), plain, 0); err == nil || errors.As(err, &invalid) || !needed && !errors.Is(err, ErrNoDF11Config) {
			t.Errorf("a BF16 model with %s: %v", name, err)
		}
	}
}
