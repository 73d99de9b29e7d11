package main

import (
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestOtherRevision checks that the card of a result that was made from another commit than main's
// names the commit and the revision, and that it promises the evaluation results of the original only
// if main has the same weights and configs. The original is on another Hub than the public one, so
// the card links to no page of it.
func TestOtherRevision(t *testing.T) {
	const promise = "evaluation results of the original hold"
	srv := startHub(t, "hf_any")
	commit := srv.AddModel("acme/small", smallModel(1))
	for branch, files := range map[string]map[string][]byte{
		"main-again": nil,
		"readme":     {"README.md": []byte("# other")},
		"config":     {names.Config: []byte(strings.Replace(string(smallModel(1).Files()[names.Config]), "{", `{"rope_theta": 1.5, `, 1))},
		"weights":    smallModel(2).Files(),
	} {
		at := commit
		srv.CreateBranch("acme/small", branch, "main")
		if files != nil {
			at = srv.Push("acme/small", branch, files)
		}
		target := "tester/" + branch
		must(t, "acme/small@"+branch, "--push", "--repo-id", target)
		text, err := srv.ReadFile(target, "main", names.Card)
		world.Must(t, err)
		card := string(text)
		isMains := branch == "main-again"
		headline := "`acme/small` at revision `" + branch + "`, not main, in [DFloat11]"
		if strings.Contains(card, headline) == isMains || strings.Contains(card, "`acme/small` in [DFloat11]") != isMains ||
			!strings.Contains(card, "from `acme/small` at commit `"+at+"`") || strings.Contains(card, "huggingface.co/acme/") {
			t.Errorf("%s: the card names another original:\n%s", branch, card)
		}
		if same := isMains || branch == "readme"; strings.Contains(card, promise) != same {
			t.Errorf("%s: the card promises the original's results: %v", branch, !same)
		}
	}
}

// TestANewBranchHasItsOwnCard checks that a branch that begins with the finished result of main gets a
// card whose commands name the branch, and is up to date after that.
func TestANewBranchHasItsOwnCard(t *testing.T) {
	srv := startHub(t, "hf_any")
	srv.AddModel("acme/small", smallModel(1))
	must(t, "acme/small", "--push")
	must(t, "acme/small", "--push", "--revision", "dev")
	head := srv.Head("tester/small-DF11", "dev")
	for branch, command := range map[string]string{"main": "verify tester/small-DF11 --against", "dev": "verify tester/small-DF11@dev --against"} {
		card, err := srv.ReadFile("tester/small-DF11", branch, names.Card)
		if world.Must(t, err); !strings.Contains(string(card), command) {
			t.Errorf("%s: the card has no %q:\n%s", branch, command, card)
		}
	}
	must(t, "acme/small", "--push", "--revision", "dev")
	if now := srv.Head("tester/small-DF11", "dev"); now != head {
		t.Errorf("the next run made another commit, %s after %s", now, head)
	}
}
