package names

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPaths checks paths by both rules: what a repo may list, and what may be written.
func TestPaths(t *testing.T) {
	long := strings.Repeat("a", maxName)
	for name, want := range map[string]struct{ listed, safe bool }{
		"config.json":               {true, true},
		"a/b c/#.txt":               {true, true},
		".gitattributes":            {true, true},
		"x/.gitignore":              {true, true},
		"..a":                       {true, true},
		"a..b/c":                    {true, true},
		"日本.txt":                    {true, true},
		"cone.safetensors":          {true, true},
		"console/com":               {true, true},
		StateDir + "/" + Manifest:   {true, true},
		long:                        {true, true},
		"con.safetensors":           {true, false},
		"NUL":                       {true, false},
		"x/con":                     {true, false},
		"Aux .txt/b":                {true, false},
		"com1":                      {true, false},
		"LPT².txt":                  {true, false},
		"conin$":                    {true, false},
		"ab:c":                      {true, false},
		"a*b":                       {true, false},
		"a?b":                       {true, false},
		`a"b`:                       {true, false},
		"a<b>|c":                    {true, false},
		"a. ":                       {true, false},
		"a./b":                      {true, false},
		"a ":                        {true, false},
		"x/.git/config":             {true, false},
		"x/.GIT":                    {true, false},
		"GIT~1/config":              {true, false},
		long + "a":                  {true, false},
		"a:b":                       {},
		"C:x":                       {},
		"c:/x":                      {},
		".git":                      {},
		".git/config":               {},
		".GIT/x":                    {},
		"":                          {},
		".":                         {},
		"..":                        {},
		"../a":                      {},
		"a/../b":                    {},
		"a/..":                      {},
		"./a":                       {},
		"/a":                        {},
		"//a/b":                     {},
		"a//b":                      {},
		"a/":                        {},
		`a\b`:                       {},
		`..\a`:                      {},
		"a\x00b":                    {},
		"a\nb":                      {},
		"a\x7fb":                    {},
		"a\u009bb":                  {},
		"a\xffb":                    {},
		strings.Repeat("a/", 2500):  {},
		strings.Repeat("ab/c", 2e3): {},
	} {
		if got := IsListed(name); got != want.listed {
			t.Errorf("IsListed(%.40q): %v", name, got)
		}
		if got := IsSafe(name); got != want.safe {
			t.Errorf("IsSafe(%.40q): %v", name, got)
		}
	}
}

// A safe path may be listed, stays inside the folder on this system, and is just as safe in parts
// and in capital letters.
func FuzzPaths(f *testing.F) {
	for _, name := range []string{"a/../b", `a\b`, "a/con", "x/.git", "a:b", "LPT1 .x/y", "a/b.c"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !IsSafe(name) {
			return
		}
		if !IsListed(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
			t.Errorf("%q is safe, but leaves the folder or may not be listed", name)
		}
		if strings.ContainsAny(name, "\\:*?\"<>|\x00\n\r\t\x1b") {
			t.Errorf("%q is safe despite its characters", name)
		}
		for part := range strings.SplitSeq(name, "/") {
			if !IsSafe(part) || part != strings.TrimRight(part, ". ") {
				t.Errorf("%q is safe, but its part %q isn't", name, part)
			}
		}
	})
}

func TestRepos(t *testing.T) {
	for id, want := range map[string]struct{ repo, new bool }{
		"a/b":                          {true, true},
		"meta-llama/Llama-3.1-8B":      {true, true},
		"a_b/c.d-DF11":                 {true, true},
		"_a/_b-":                       {true, true},
		"u/" + strings.Repeat("x", 96): {true, true},
		"gpt2":                         {true, false},
		"a/b--c":                       {true, false},
		"a/b.":                         {true, false},
		"a/b-":                         {true, false},
		"a/b.git":                      {true, false},
		"u/" + strings.Repeat("x", 97): {true, false},
		"":                             {},
		"a/":                           {},
		"/b":                           {},
		"a/b/c":                        {},
		"a/b..c":                       {},
		"../b":                         {},
		"a/-b":                         {},
		"a/.b":                         {},
		"a/b c":                        {},
		"a/b?":                         {},
		"a/b\n":                        {},
		"é/b":                          {},
	} {
		if got := IsRepo(id); got != want.repo {
			t.Errorf("IsRepo(%q): %v", id, got)
		}
		if err := CheckNewRepo(id); (err == nil) != want.new {
			t.Errorf("CheckNewRepo(%q): %v", id, err)
		}
	}
}

func TestHashes(t *testing.T) {
	for text, want := range map[string]struct{ commit, sha256 bool }{
		strings.Repeat("0a", 20):        {true, false},
		strings.Repeat("0a", 32):        {true, true},
		strings.Repeat("0A", 32):        {},
		strings.Repeat("0a", 19) + "0":  {},
		strings.Repeat("0a", 31) + "0":  {},
		strings.Repeat("0a", 32) + "0":  {},
		strings.Repeat("0a", 32) + "\n": {},
		strings.Repeat("0g", 20):        {},
		"main":                          {},
		"":                              {},
	} {
		if IsCommit(text) != want.commit || IsSHA256(text) != want.sha256 {
			t.Errorf("%q: commit %v, sha256 %v", text, IsCommit(text), IsSHA256(text))
		}
	}
}
