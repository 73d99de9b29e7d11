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
	for _, changed := range []string{"", names.Config, "tokenizer.json", "chat_template.jinja"} {
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
