package docs_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestLinksLeadSomewhere checks that each relative link of a page leads to a file and, if it names
// one, to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	for file, text := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(withoutBlocks(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to, heading, _ := strings.Cut(m[1], "#")
			if to = path.Join(path.Dir(file), to); to == path.Dir(file) {
				to = file
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			} else if heading != "" && !hasHeading(t, to, heading) {
				t.Errorf("%s links to %s, which has no such heading", file, m[1])
			}
		}
	}
}

// TestNamedFilesExist checks that files of the repository exist if pages or code name them.
func TestNamedFilesExist(t *testing.T) {
	named := regexp.MustCompile("`(\\.?/?(?:\\.ci|cmd|deploy|docs|encoder|hub|internal|packaging|pipeline|testdata|verify)/[\\w./-]+)")
	for file, text := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s names %s: %v", file, m[1], err)
			}
		}
	}
	format := read(t, "docs/format.md")
	cited := regexp.MustCompile(`docs/([\w.-]+\.(?:md|json))(?: §(\d+))?`)
	for _, files := range goFiles(t) {
		for _, f := range files {
			for _, m := range cited.FindAllStringSubmatch(read(t, f.path), -1) {
				if _, err := os.Stat("docs/" + m[1]); err != nil {
					t.Errorf("%s names docs/%s: %v", f.path, m[1], err)
				}
				if m[2] != "" && !strings.Contains(format, "\n## "+m[2]+". ") {
					t.Errorf("%s cites §%s, which docs/format.md does not have", f.path, m[2])
				}
			}
		}
	}
}

// TestNamedTestsExist checks that each test, fuzz target, and benchmark in a command of a page
// exists in a package of that command. A pattern that matches nothing would pass and show nothing.
func TestNamedTestsExist(t *testing.T) {
	command := regexp.MustCompile("go test [^`\n]*")
	option := regexp.MustCompile(`-(run|bench|fuzz) ('[^']*'|\S+)`)
	tests, n := testsOf(t), 0
	for file, text := range pages(t) {
		for _, c := range command.FindAllString(strings.ReplaceAll(text, `\|`, "|"), -1) {
			var names string
			for _, m := range regexp.MustCompile(`\./[\w./-]+`).FindAllString(c, -1) {
				names += tests[path.Clean(m)]
			}
			for _, m := range option.FindAllStringSubmatch(c, -1) {
				for alternative := range strings.SplitSeq(strings.Trim(m[2], "'"), "|") {
					n++
					name, script, _ := strings.Cut(strings.Trim(alternative, "^$"), "/")
					if !regexp.MustCompile(name).MatchString(names) {
						t.Errorf("%s: %s: nothing is named like %s", file, c, name)
					}
					if _, err := os.Stat("cmd/df11-convert/testdata/script/" + script + ".txtar"); name == "TestScript" && err != nil {
						t.Errorf("%s: %s: %v", file, c, err)
					}
				}
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d names of tests were found", n)
	}
}

// TestEveryClaimHasACommand checks that docs/measured.md has a row with a command for each promise
// in README.md.
func TestEveryClaimHasACommand(t *testing.T) {
	promises := section(t, "README.md", "What is guaranteed")
	claims := regexp.MustCompile(`(?m)^- \*\*(.*?)\.?\*\*`).FindAllStringSubmatch(promises, -1)
	if len(claims) < 7 {
		t.Errorf("README.md has only %d promises", len(claims))
	}
	for _, c := range claims {
		if !strings.Contains(read(t, "docs/measured.md"), "\n| "+c[1]+" | `") {
			t.Errorf("docs/measured.md has no command for: %s", c[1])
		}
	}
}

// testsOf returns the names of all tests, fuzz targets and benchmarks of every package, one a line.
func testsOf(t *testing.T) map[string]string {
	names := map[string]string{}
	for dir, files := range goFiles(t) {
		for _, f := range files {
			if f.test {
				for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)`).FindAllStringSubmatch(read(t, f.path), -1) {
					names[dir] += m[1] + "\n"
				}
			}
		}
	}
	return names
}

// pages returns every page of the repository by its path, but not those that tests compare with.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range tree(t, func(dir string) bool { return path.Base(dir)[0] != '.' }) {
		if strings.HasSuffix(name, ".md") && !strings.HasPrefix(path.Base(name), "card_") {
			out[name] = read(t, name)
		}
	}
	if len(out) < 20 {
		t.Fatalf("%d pages", len(out))
	}
	return out
}

// withoutBlocks cuts out the blocks of code.
func withoutBlocks(page string) string {
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(page, "")
}

// hasHeading reports whether a page has a heading with an anchor, made as GitHub makes it.
func hasHeading(t *testing.T, file, anchor string) bool {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(withoutBlocks(read(t, file)), -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		text = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(text), "")
		if strings.ReplaceAll(text, " ", "-") == anchor {
			return true
		}
	}
	return false
}

func read(t *testing.T, file string) string {
	t.Helper()
	return string(world.Read(t, file))
}

// section returns the text of a page below one of its headings of the second level.
func section(t *testing.T, file, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(read(t, file), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %s", file, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// TestTriedClassesAreCounted checks README's numbers of classes against the table of those that were
// tried.
func TestTriedClassesAreCounted(t *testing.T) {
	tried, official, ours := map[string]bool{}, map[string]bool{}, map[string]bool{}
	loads := regexp.MustCompile(`equal|tied`)
	for line := range strings.Lines(read(t, "internal/catalog/tried.txt")) {
		cells := strings.Fields(line)
		if len(cells) < 6 || cells[0] == "#" {
			continue
		}
		class, _, _ := strings.Cut(cells[0], "=")
		tried[class] = true
		if loads.MatchString(strings.Join(cells[2:5], " ")) {
			official[class] = true
		}
		if _, cell, is := strings.Cut(cells[5], "df11="); is && loads.MatchString(cell) {
			ours[class] = true
		}
	}
	want := fmt.Sprintf("%d classes with the code of their own cards: %d load in `df11`, %d in the official loader",
		len(tried), len(ours), len(official))
	if !strings.Contains(strings.Join(strings.Fields(read(t, "README.md")), " "), want) {
		t.Errorf("README.md doesn't say %q", want)
	}
}
