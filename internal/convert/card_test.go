package convert_test

import (
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
)

// TestCardIsAlwaysTrue checks that an update renews what we wrote in a card, in a folder and in a
// repo, and keeps what its owner has added, around our part and in the front matter. What was added
// doesn't make a target outdated. A card without the marks stays as it is.
func TestCardIsAlwaysTrue(t *testing.T) {
	t.Parallel()
	w, out := newWorld(t, small()), t.TempDir()
	w.mustConvert(t)
	w.mustConvert(t, inFolder(out))
	cards := map[string]*site{
		"repo":   {world: w, t: t, repo: targetRepo, branch: "main"},
		"folder": {world: w, t: t, folder: out},
	}
	for name, s := range cards {
		again := func(want bool) string {
			t.Helper()
			r := w.mustConvert(t)
			if s.folder != "" {
				r = w.mustConvert(t, inFolder(out))
			}
			if r.Verified.UpToDate != want || r.Made.Now > 0 || !tookAll(r) {
				t.Errorf("%s: %+v, %+v", name, r.Made, r.Verified)
			}
			return s.files()[names.Card]
		}
		w.mustConvert(t, inFolder(out)) // the source may have moved on
		card := s.files()[names.Card]
		edited := strings.Replace(card, "tags:", "license_name: mine\ntags:", 1) + "\n## Mine\n"
		if card == edited || metadata.CardPart([]byte(card)) == "" {
			t.Fatalf("%s: no marks, or no tags:\n%s", name, card)
		}
		s.put(names.Card, []byte(edited))
		if got := again(true); got != edited {
			t.Errorf("%s: an edited card is\n%s", name, got)
		}
		for _, typo := range []string{"# A typo", "# Another"} { // then the card is ours by its hash, too
			w.Push(sourceRepo, "main", map[string][]byte{"LICENSE": []byte(name + typo)})
			got, commit := again(false), w.Head(sourceRepo, "main")
			for _, part := range []string{commit, "license_name: mine\n", "\n## Mine\n"} {
				if !strings.Contains(got, part) {
					t.Errorf("%s: no %q in\n%s", name, part, got)
				}
			}
			if got := again(true); !strings.Contains(got, commit) {
				t.Errorf("%s: a second run changes the card:\n%s", name, got)
			}
		}
		old := edited
		s.put(names.Card, []byte(old)) // its owner goes back to an old one, which names another commit
		if got := again(false); !strings.Contains(got, w.Head(sourceRepo, "main")) || !strings.Contains(got, "## Mine") {
			t.Errorf("%s: an old card stays:\n%s", name, got)
		}
		s.put(names.Card, []byte("# Mine alone\n"))
		w.Push(sourceRepo, "main", map[string][]byte{"LICENSE": []byte(name)})
		if got := again(false); got != "# Mine alone\n" {
			t.Errorf("%s: a card of someone else's is\n%s", name, got)
		}
	}
}
