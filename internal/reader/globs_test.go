package reader

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
)

// gitIgnores returns which of the paths Git ignores in a folder with these .gitignores.
func gitIgnores(t *testing.T, ignoreCase bool, texts map[string]string, paths []string) map[string]bool {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	dir := t.TempDir()
	git := func(in string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", fmt.Sprint("core.ignorecase=", ignoreCase)}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != 0 && code != 1 { // 1: it ignores none
			t.Fatalf("git %q: %v", args, err)
		}
		return string(out)
	}
	git("", "init", "-q")
	for folder, text := range texts {
		name := filepath.Join(dir, folder, ".gitignore")
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := git(strings.Join(paths, "\x00")+"\x00", "check-ignore", "--no-index", "--stdin", "-z")
	return setOf(strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"))
}

// globNames are what the patterns of TestGlobsAreGits may match.
var globNames = []string{"a/b/c", "a/b", "ab", "a b", "A", "a/.b", "x/a/b", "a]", "a-b", "a[b", "a*", "aé", "a/b/b/c", "c", "b/c/a",
	"-a", "!a", "#a", "a\tb", "aÉ", " a", "a^b", "a ", "[a]", "AB", "Ab", "A/B", "[", "a[", "b[c", "[b", "x", "xa/c", "a:", "_", "a\\", "\\", "é", "B/a/x/C", "a/x/B"}

// globParts are what random patterns are made of.
var globParts = []string{"a", "b", "c", "A", "B", "x", "*", "**", "?", "/", "/**/", "**/", "/**", "[a-c]", "[!a]", "[^b]", "[!A]", "[]a]", "[a", "[", "\\",
	"!", "#", " ", "é", "[[:alpha:]]", "[a-", "]", "-", "[\\]a]", "\\[", "\\*", "***", "\\/", "[a/b]", "\r", "[--a]", "[A-Z]", "[[:upper:]]", "[[:lower:]b]", "[[:x:]a]",
	"[[:a]", "[[:]a]", "[A]", "\\A", "[\\A-\\Z]", "[!A-Z]", "[![:upper:]]", "[é]", "[^é]", "\x00", "\ufeff", "[b-a]", "[!]", "[^]a]", "[[-a]", "[a-c-e]", "[[:punct:]]", "[[:space:]]"}

// randomIgnore returns the text of a .gitignore of up to 4 patterns.
func randomIgnore(rnd *rand.Rand) string {
	var lines []string
	for i := range 1 + rnd.IntN(4) {
		s := ""
		for range 1 + rnd.IntN(6) {
			s += globParts[rnd.IntN(len(globParts))]
		}
		if i > 0 && rnd.IntN(2) == 0 {
			s = "!" + s
		}
		lines = append(lines, s)
	}
	return strings.Join(lines, "\n")
}

// TestGlobsAreGits compares random .gitignores with what Git ignores because of them, with each
// setting of core.ignorecase: a glob matches what Git says, and what Git ignores with either
// setting, a folder keeps back. DF11_DEEP tries more.
func TestGlobsAreGits(t *testing.T) {
	n, seed := 1000, uint64(1)
	if os.Getenv("DF11_DEEP") != "" {
		n, seed = 20_000, rand.Uint64()
	}
	rnd := rand.New(rand.NewPCG(seed, 14))
	texts := map[string]string{}
	var paths []string
	for i := range n {
		folder := fmt.Sprint("n", i)
		texts[folder] = randomIgnore(rnd)
		if i == 0 {
			texts[folder] = "/**"
		}
		for _, name := range globNames {
			paths = append(paths, folder+"/"+name)
		}
	}
	for _, fold := range []bool{false, true} {
		ignored, wrong := gitIgnores(t, fold, texts, paths), 0
		for _, p := range paths {
			folder, name, _ := strings.Cut(p, "/")
			g, _ := new(ignores).parse([]byte(texts[folder]))
			in, left := name, maxSteps
			if fold {
				in = lowered(name)
			}
			if got := g.match(in, fold, &left); got != ignored[p] || ignored[p] && !g.ignores(name, &left) {
				if wrong++; wrong < 10 {
					t.Errorf("core.ignorecase=%v: %q matches %q: %v, Git says %v (seed %d)", fold, texts[folder], name, got, ignored[p], seed)
				}
			}
		}
		if len(ignored) < n || len(ignored) > len(paths)*9/10 {
			t.Errorf("Git ignores %d of %d: the patterns say little", len(ignored), len(paths))
		}
	}
}

// TestFoldersOfIgnores checks that a folder keeps back whatever Git ignores, if there are random
// .gitignores at every level.
func TestFoldersOfIgnores(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 14))
	texts, folders := map[string]string{}, map[string]*Folder{}
	var paths []string
	for i := range 100 {
		top := fmt.Sprint("n", i)
		local := map[string]string{}
		for _, dir := range []string{".", "a", "a/b", "x", "x/a", "A"} {
			local[dir] = randomIgnore(rnd)
			texts[top+"/"+dir] = local[dir]
		}
		all := append([]string{".gitignore", "a/.gitignore", "a/b/.gitignore", "x/.gitignore", "x/a/.gitignore", "A/.gitignore"}, globNames...)
		folders[top] = NewFolder(Files{Paths: all, Read: func(name string) []byte { return []byte(local[filepath.ToSlash(filepath.Dir(name))]) }}, nil)
		for _, name := range globNames {
			if _, isFolder := local[name]; !isFolder {
				paths = append(paths, top+"/"+name)
			}
		}
	}
	for _, fold := range []bool{false, true} {
		for p := range gitIgnores(t, fold, texts, paths) {
			if top, name, _ := strings.Cut(p, "/"); folders[top].KeepsBack(name) == "" {
				t.Errorf("Git ignores %q with core.ignorecase=%v, a result takes it (%s)", name, fold, top)
			}
		}
	}
}

// TestComposedNames checks that a file whose name is decomposed, as some programs write it on
// macOS, stays if a .gitignore names it in the composed form, as Git does there, and the other way
// around.
func TestComposedNames(t *testing.T) {
	const composed, decomposed = "\u00e9.json", "e\u0301.json"
	for _, pattern := range []string{composed, decomposed} {
		g, _ := new(ignores).parse([]byte(pattern))
		left := maxSteps
		if !g.ignores(decomposed, &left) {
			t.Errorf("%+q doesn't keep %+q back", pattern, decomposed)
		}
	}
}

// TestMatchingIsBounded checks that .gitignores and paths that were made to take long to match take
// a bounded number of steps, and that a folder keeps everything back once they're used up, and says
// why.
func TestMatchingIsBounded(t *testing.T) {
	long, exhausted := strings.Repeat("a/", 1500), 0
	for _, unit := range []string{"**/", "*a", "*", "?*", "[a-z]*", "**/a/"} {
		text := strings.Repeat(unit, 64_000/len(unit)) + "zzz\n"
		var paths []string
		for i := range 200 {
			paths = append(paths, fmt.Sprint(long, i, "/tokenizer.json"))
		}
		f := NewFolder(Files{Paths: append(paths, ".gitignore"), Read: func(string) []byte { return []byte(text) }}, nil)
		f.left /= 16 // the rest would take a second
		for _, p := range paths {
			if why := f.KeepsBack(p); (why == "") != (f.left >= 0) || why != "" && !strings.Contains(why, "very long") {
				t.Fatalf("%q: with %d steps left, %q", unit, f.left, why)
			}
		}
		if f.left < -100_000 {
			t.Errorf("%q: %d steps too many", unit, -f.left)
		}
		exhausted += max(0, min(1, -int(f.left)))
	}
	if exhausted < 2 {
		t.Error("the patterns take few steps")
	}
}

// TestReadingIsBounded checks that a folder with many large files reads a bounded part of them,
// always the same one, and its .gitignore first.
func TestReadingIsBounded(t *testing.T) {
	const size = 8 << 20
	large := []byte(strings.Repeat("x", size))
	index := `{"_class_name": ["pipeline", "P"]`
	paths := []string{".gitignore", "model_index.json", "pipeline.py", "modules.json", "README.md"}
	for i := range 20 {
		index += fmt.Sprintf(`, "d%d": ["own", "B"]`, i)
		for name := range opened {
			paths = append(paths, fmt.Sprintf("d%d/%s", i, name), fmt.Sprintf("d%d/own.py", i))
		}
	}
	for i := range 100 {
		paths = append(paths, fmt.Sprintf("z%d/.gitignore", i))
	}
	sort.Strings(paths)
	var first []string
	for range 2 {
		var read []string
		bytes := 0
		f := NewFolder(Files{Paths: paths, Read: func(name string) []byte {
			b := large
			switch read = append(read, name); {
			case name == "model_index.json":
				b = []byte(index + "}")
			case name == ".gitignore":
				b = []byte("special_tokens_map.json\n")
			case strings.HasPrefix(name, "z0/"):
				b = []byte("a.json\n")
			}
			bytes += len(b)
			return b
		}}, nil)
		if bytes > maxRead+len(large) || bytes < maxRead {
			t.Errorf("it reads %d bytes", bytes)
		}
		if first == nil {
			first = read
		}
		if !slices.Equal(read, first) {
			t.Errorf("it reads %q, and then %q", first, read)
		}
		if f.Opens("d1/special_tokens_map.json") || !f.Opens("d1/tokenizer.json") || f.Opens("z5/tokenizer.json") {
			t.Error("other files come along")
		}
	}
}
