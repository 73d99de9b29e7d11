package metadata

import (
	"fmt"
	"regexp"
	"slices"
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
		"a tag":           {strings.Replace(old, "license: mit\n", "license: mit\ntags: # my own\n  - x\n", 1), []string{"org/b", "quantized", "license: apache-2.0", "# my own", "- x", "# New"}, []string{"org/a", "mit"}},
		"a license":       {strings.Replace(old, "license: mit\n", "license: gpl\n", 1), []string{"org/b", "license: gpl", "# New"}, []string{"apache"}},
		"no license":      {strings.Replace(old, "license: mit\n", "", 1), []string{"org/b", "quantized", "# New"}, []string{"apache"}},
		"other kinds":     {strings.Replace(old, "license: mit\n", "license: {a: b}\nx: {y: [z]}\n", 1), []string{"org/b", "license: {a: b}", "x: {y: [z]}", "# New"}, []string{"apache"}},
		"other writing":   {strings.Replace(old, "license: mit\n", "license: # mine\n- 'mit'\nx: y\n", 1), []string{"org/b", "apache-2.0", "x: y", "# New"}, []string{"mit"}},
		"an anchor":       {strings.Replace(old, "license: mit\n", "license: &l mit\nx: [*l, *l]\n", 1), []string{"org/b", "license: apache-2.0", "x: [&l mit, *l]", "# New"}, nil},
		"nested anchors":  {strings.Replace(old, "license: mit\n", "license: &l [&m mit]\nx: *m\ny: *l\n", 1), []string{"org/b", "license: apache-2.0", "x: &m mit", "y: &l [&m mit]", "# New"}, nil},
		"another base":    {strings.Replace(old, "org/a", "org/c", 1), []string{"org/b", "license: apache-2.0", "# New"}, []string{"org/c"}},
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
		if !HasFront(got, now) || HasFront(got, []byte(old)) {
			t.Errorf("%s: the front matter isn't the one last written:\n%s", name, got)
		}
		if CardPart(got) != CardPart(now) || string(UpdateCard(got, now)) != string(got) {
			t.Errorf("%s: an update changes it again:\n%s", name, got)
		}
		if again := UpdateCard(UpdateCard(got, []byte(old)), now); string(again) != string(got) {
			t.Errorf("%s: there and back makes\n%s\nof\n%s", name, again, got)
		}
	}
}

// TestManyMembers checks that a front matter with more members than can be compared is refused in
// time, and that one with many results is read.
func TestManyMembers(t *testing.T) {
	lines := func(n int, indent string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%sa%d:\n", indent, i)
		}
		return b.String()
	}
	if _, err := ParseFrontMatter([]byte("---\n" + lines(130_000, "") + "---\n")); err == nil {
		t.Error("130,000 members are read")
	}
	f, err := ParseFrontMatter([]byte("---\nlicense: mit\nmodel-index:\n" + lines(50_000, "  ") + "---\n"))
	if err != nil || !slices.Equal(f.License, []string{"mit"}) {
		t.Error(f, err)
	}
}

// TestMembersComeAndGo checks that an update adds and removes members of ours in an edited front
// matter, and replaces what someone else wrote only if it must.
func TestMembersComeAndGo(t *testing.T) {
	card := func(lines string) []byte { return MarkCard([]byte("---\n" + lines + "---\n\n# Card\n")) }
	edit := func(c []byte, old, now string) []byte { return []byte(strings.Replace(string(c), old, now, 1)) }
	earlier := card("license: other\nlicense_name: own\nlanguage:\n  - en\n")
	now := card("license: mit\npipeline_tag: text-generation\n")
	unrecorded := regexp.MustCompile(`(it: \S+ \S+) \S+ -->`)
	early := func(c []byte) []byte { return unrecorded.ReplaceAll(c, []byte("$1 -->")) }
	more := edit(earlier, "language:", "x: y\nlanguage:")
	task := edit(earlier, "language:", "pipeline_tag: other\nlanguage:")
	named := edit(earlier, "license: other", "license: gpl")
	for name, tt := range map[string]struct {
		earlier []byte
		always  []string
		want    string // the members
	}{
		"untouched":              {earlier, nil, "license: mit\npipeline_tag: text-generation\n"},
		"a member more":          {more, nil, "license: mit\nx: y\npipeline_tag: text-generation\n"},
		"one that we write now":  {task, nil, "license: mit\npipeline_tag: other\n"},
		"a license of one's own": {named, nil, "license: gpl\npipeline_tag: text-generation\n"},
		"and one by a flag":      {named, LicenseMembers, "license: mit\npipeline_tag: text-generation\n"},
		"an early card":          {early(earlier), nil, "license: mit\npipeline_tag: text-generation\n"},
		"an early card, edited":  {early(more), nil, "license: mit\nx: y\nlanguage:\n  - en\npipeline_tag: text-generation\n"},
	} {
		got, _, _ := strings.Cut(strings.TrimPrefix(string(UpdateCard(tt.earlier, now, tt.always...)), "---\n"), "---\n")
		if got != tt.want {
			t.Errorf("%s: the members are\n%s", name, got)
		}
	}
}
