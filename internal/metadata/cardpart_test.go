package metadata

import (
	"strings"
	"testing"
)

// TestUpdateCard checks that an update replaces what we wrote and keeps what others did: around our
// part, and in the front matter, but for the names of the original.
func TestUpdateCard(t *testing.T) {
	front := func(base, more string) string {
		return "---\nbase_model: " + base + "\nbase_model_relation: quantized\n" + more + "---\n"
	}
	old := string(MarkCard([]byte(front("org/a", "license: mit\n") + "\n# Old\n")))
	now := MarkCard([]byte(front("org/b", "license: apache-2.0\n") + "\n# New\n"))
	mark := strings.Index(old, "<!--")
	for name, tt := range map[string]struct {
		earlier string
		want    []string // in this order; nil: it can't be updated
		not     []string
	}{
		"untouched":       {old, []string{"org/b", "apache-2.0", "# New"}, []string{"org/a", "# Old", "mit"}},
		"text below":      {old + "\nMine.\n", []string{"org/b", "apache-2.0", "# New", "Mine."}, []string{"# Old"}},
		"text above":      {old[:mark] + "Mine.\n\n" + old[mark:], []string{"org/b", "Mine.", "# New"}, []string{"# Old"}},
		"a tag":           {strings.Replace(old, "license: mit\n", "license: mit\ntags: # my own\n  - x\n", 1), []string{"org/b", "quantized", "license: mit", "# my own", "- x", "# New"}, []string{"org/a", "apache"}},
		"no front matter": {old[mark:], []string{"org/b", "# New"}, []string{"# Old"}},
		"our part edited": {strings.Replace(old, "# Old", "# Mine", 1), nil, nil},
		"no mark":         {strings.Replace(old, "<!-- df11-convert: this", "<!-- this", 1), nil, nil},
		"no second mark":  {strings.Replace(old, endMark, "", 1), nil, nil},
		"two parts":       {old + old[mark:], nil, nil},
		"broken":          {strings.Replace(old, "license: mit", "license: [", 1), nil, nil},
		"a list":          {strings.Replace(old, front("org/a", "license: mit\n"), "---\n- x\n---\n", 1), nil, nil},
		"another card":    {"# Mine\n", nil, nil},
	} {
		got := UpdateCard([]byte(tt.earlier), now)
		if (got == nil) != (tt.want == nil) {
			t.Errorf("%s: got\n%s", name, got)
			continue
		}
		rest := string(got)
		for _, part := range tt.want {
			_, after, found := strings.Cut(rest, part)
			if rest = after; !found {
				t.Errorf("%s: no %q in its place in\n%s", name, part, got)
			}
		}
		for _, part := range tt.not {
			if strings.Contains(string(got), part) {
				t.Errorf("%s: %q is still in\n%s", name, part, got)
			}
		}
		if got == nil {
			continue
		}
		if CardPart(got) != CardPart(now) || string(UpdateCard(got, now)) != string(got) {
			t.Errorf("%s: an update changes it again:\n%s", name, got)
		}
		if again := UpdateCard(UpdateCard(got, []byte(old)), now); string(again) != string(got) {
			t.Errorf("%s: there and back makes\n%s\nof\n%s", name, again, got)
		}
	}
}
