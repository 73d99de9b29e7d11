package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestChangedFilesStayPrivate checks that --original opens a target only if every file that the result
// takes from the folder is the repo's, by its hash. If one isn't, the run names it, the target is
// private, and the card names it and doesn't promise the evaluation results of the original.
func TestChangedFilesStayPrivate(t *testing.T) {
	const promise = "evaluation results of the original hold"
	srv := startHub(t, "hf_any")
	srv.AddModel("acme/small", smallModel(1))
	files := smallModel(1).Files()
	for _, changed := range []string{"", names.Config, "tokenizer.json", "chat_template.jinja", names.Card} {
		t.Run(changed, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, b := range files {
				world.Write(t, filepath.Join("mine", name), b)
			}
			switch changed {
			case "":
			case names.Config:
				text := strings.Replace(string(files[changed]), "{", `{"note": "secret", `, 1)
				world.Write(t, filepath.Join("mine", changed), text)
			case names.Card:
				world.Write(t, filepath.Join("mine", changed), "---\ntags: [secret]\n---\n")
			default:
				world.Write(t, filepath.Join("mine", changed), "{}")
			}
			target := "tester/of-" + strings.NewReplacer(".", "-", "_", "-").Replace(changed) + "x"
			code, planned, stderr := program(t, "plan", "./mine", "--original", "acme/small")
			if code != exitOK || !strings.Contains(planned, "acme/small@") ||
				strings.Contains(planned, "the target will be private: of what is copied, these files aren't those of acme/small: "+changed) != (changed != "") ||
				strings.Contains(planned, "add --original") {
				t.Errorf("exit %d: plan doesn't say what --original does: %s%s", code, planned, stderr)
			}
			code, _, stderr = program(t, "./mine", "--push", "--repo-id", target, "--original", "acme/small")
			if code != exitOK {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			if srv.IsPrivate(target) != (changed != "") {
				t.Errorf("the target is private: %v", changed == "")
			}
			card, err := srv.ReadFile(target, "main", names.Card)
			world.Must(t, err)
			if strings.Contains(string(card), promise) != (changed == "") {
				t.Errorf("the card promises the original's results: %v", changed != "")
			}
			if changed == "" {
				return
			}
			if !strings.Contains(stderr, "aren't those of acme/small: "+changed) || !strings.Contains(string(card), "aren't the original's: `"+changed+"`") {
				t.Errorf("the run or the card doesn't name %s: %s", changed, stderr)
			}
			must(t, "./mine", "--push", "--repo-id", target+"-open", "--original", "acme/small", "--public")
			if srv.IsPrivate(target + "-open") {
				t.Error("--public made a private target")
			}
			if _, err := os.Stat("mine"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCardIsCompared checks for each member of a front matter that a local source with --original has
// a public target only if the card takes from it what it would take from the original's. A card that
// says nothing, that isn't there, or that the folder keeps back counts for nothing: then the original's
// is taken, whose license is that of these weights.
func TestCardIsCompared(t *testing.T) {
	srv := startHub(t, "hf_any")
	const theirs = "license: other\nlicense_name: theirs\nlicense_link: https://x/theirs\nlanguage: [de]\npipeline_tag: text-generation\n" +
		"tags: [fine]\ndatasets: [acme/data]\n"
	files := smallModel(1).Files()
	files[names.Card] = []byte("---\n" + theirs + "---\n# The original\n")
	srv.AddRepo("acme/small", files)
	t.Chdir(t.TempDir())
	for name, b := range files {
		world.Write(t, filepath.Join("mine", name), b)
	}
	plan := func(card, ignore string) (isPrivate bool) {
		t.Helper()
		_ = os.Remove("mine/README.md")
		if card != "" {
			world.Write(t, "mine/README.md", card)
		}
		world.Write(t, "mine/.gitignore", ignore)
		code, out, stderr := program(t, "plan", "./mine", "--original", "acme/small")
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		return strings.Contains(out, "the target will be private: of what is copied, these files aren't those of acme/small: README.md")
	}
	for card, want := range map[string]bool{
		"":           false,
		"# Mine\n":   false,
		"---\n---\n": false,
		"---\n" + theirs + "---\n# Another text\n":                                                             false,
		"---\n" + theirs + "base_model: acme/small\nlibrary_name: x\nquantized_by: me\nmine: 1\n---\n":         false,
		"---\n" + strings.ReplaceAll(theirs, "license_link: https://x/theirs", "license_link: ours") + "---\n": true,
		"---\n" + strings.ReplaceAll(theirs, "theirs", "ours") + "---\n":                                       true,
		"---\n" + strings.ReplaceAll(theirs, "other", "mit") + "---\n":                                         true,
		"---\n" + strings.ReplaceAll(theirs, "[de]", "[de, en]") + "---\n":                                     true,
		"---\n" + strings.ReplaceAll(theirs, "text-generation", "summarization") + "---\n":                     true,
		"---\n" + strings.ReplaceAll(theirs, "[fine]", "[fine, secret]") + "---\n":                             true,
		"---\n" + strings.ReplaceAll(theirs, "acme/data", "acme/secret") + "---\n":                             true,
		"---\n" + theirs + "prior: acme/secret\n---\n":                                                         true,
		"---\nlicense: mit\n---\n": true,
	} {
		if got := plan(card, ""); got != want {
			t.Errorf("%q: the target would be private: %v", card, got)
		}
	}
	const secret = "---\nlicense: mit\ntags: [secret]\n---\n"
	if plan(secret, "README.md\n") {
		t.Error("a card that the folder keeps back decides")
	}
	must(t, "./mine", "--push", "--repo-id", "tester/kept", "--original", "acme/small")
	card, err := srv.ReadFile("tester/kept", "main", names.Card)
	world.Must(t, err)
	if srv.IsPrivate("tester/kept") || strings.Contains(string(card), "secret") || !strings.Contains(string(card), "its license (`theirs`) applies unchanged") {
		t.Errorf("the card of a public target: %s", card)
	}
	plan(secret, "")
	must(t, "./mine", "--push", "--repo-id", "tester/open", "--original", "acme/small", "--public")
	card, err = srv.ReadFile("tester/open", "main", names.Card)
	world.Must(t, err)
	if strings.Contains(string(card), "applies unchanged") || !strings.Contains(string(card), "The original's card says something else") {
		t.Errorf("the card claims a license that isn't the original's: %s", card)
	}
}
