package names

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// pathCases returns the paths of testdata/paths.json by their verdicts: safe to write, or only
// listed, or refused.
func pathCases(t *testing.T) (cases map[string][]string) {
	text, err := os.ReadFile("testdata/paths.json")
	if err == nil {
		err = json.Unmarshal(text, &cases)
	}
	if err != nil || len(cases) != 3 {
		t.Fatalf("%d verdicts, %v", len(cases), err)
	}
	return cases
}

// TestPaths checks paths by both rules: what a repo may list, and what may be written. Package df11
// has the second rule, and its test reads the same cases.
func TestPaths(t *testing.T) {
	cases := pathCases(t)
	long := strings.Repeat("a", maxName)
	cases["safe"] = append(cases["safe"], StateDir+"/"+Manifest, long)
	cases["listed"] = append(cases["listed"], long+"a")
	cases["refused"] = append(cases["refused"], "a\xffb", strings.Repeat("a/", 2500), strings.Repeat("ab/c", 2e3))
	for verdict, paths := range cases {
		for _, path := range paths {
			if IsSafe(path) != (verdict == "safe") || IsListed(path) != (verdict != "refused") {
				t.Errorf("%.40q: safe %v, listed %v, want %s", path, IsSafe(path), IsListed(path), verdict)
			}
		}
	}
}

// spellings returns names that some file system takes for a name.
func spellings(name string) []string {
	all := []string{name, strings.ToUpper(name), strings.ToLower(name),
		norm.NFD.String(name), norm.NFC.String(name), strings.ReplaceAll(name, "s", "\u017f"), strings.ReplaceAll(name, "ß", "SS")}
	for r := range rune(0x10000) {
		if isIgnored(r) {
			i := int(r) % len(name)
			for !utf8.RuneStart(name[i]) {
				i--
			}
			all = append(all, name[:i]+string(r)+name[i:], strings.ToUpper(name)+string(r))
		}
	}
	return all
}

// TestSpellings wants one folded form of all spellings of a name, and no spelling of Git's folder,
// nor one that HFS+ would change, to be safe. With git here, it accepts nothing of them that we do.
func TestSpellings(t *testing.T) {
	for _, name := range []string{".git", "git~1", StateDir, Config, "straße.json", "é.json", "Ǆ.json"} {
		for _, s := range spellings(name) {
			if Folded(s) != Folded(name) || Folded(Folded(s)) != Folded(s) {
				t.Errorf("%+q is folded to %+q, and %+q to %+q", s, Folded(s), name, Folded(name))
			}
			hidden := strings.ContainsFunc(s, isIgnored)
			isGit := name == ".git" || name == "git~1"
			for _, path := range []string{s + "/hooks/post-checkout", "x/" + s + "/config", s} {
				if IsSafe(path) != (!hidden && !isGit) || name == ".git" && path[0] != 'x' && IsListed(path) {
					t.Errorf("%+q: safe %v, listed %v", path, IsSafe(path), IsListed(path))
				}
			}
		}
	}
	if Folded("a.json") == Folded("b.json") || Folded("a/b") == Folded("ab") {
		t.Error("different names are folded to one")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return
	}
	dir := t.TempDir()
	run := func(in string, args ...string) string {
		c := exec.Command(git, append([]string{"-C", dir, "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"}, args...)...)
		c.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(dir, "repo.git"), "GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
		c.Stdin = strings.NewReader(in)
		out, err := c.Output()
		if err != nil {
			t.Fatal(args, err)
		}
		return string(out)
	}
	run("", "init", "-q")
	tried := slices.Concat(spellings(".git"), spellings("git~1"), []string{"a", ".git::$INDEX_ALLOCATION", ".git ", ".git. .", "git~1 .", ".gitx", "git~12"})
	var lines strings.Builder
	for _, name := range tried {
		fmt.Fprintf(&lines, "100644 %s\t%s/x\x00", strings.Repeat("1", 40), name)
	}
	run(lines.String(), "update-index", "-z", "--index-info") // leaves out what it refuses
	taken := strings.Split(run("", "ls-files", "-z"), "\x00")
	if !slices.Contains(taken, "a/x") || slices.Contains(taken, ".git/x") {
		t.Fatalf("git takes %q", taken)
	}
	for _, name := range tried {
		if IsSafe(name+"/x") && !slices.Contains(taken, name+"/x") {
			t.Errorf("git refuses %+q", name)
		}
	}
}

// TestBranches checks names of branches. With git here, it has the same verdict.
func TestBranches(t *testing.T) {
	good := []string{"dev", "a-b", "feat/x", "v1.2", "a@b", "日本", "@a", "a/@", "HEADS", "a.lock.b", "refs/pr/1", "{a}"}
	bad := []string{"", " ", "my branch", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`, "-a", "a.", ".a", "a/.b", "a.lock", "a.lock/b", "/a", "a/",
		"a//b", "@", "HEAD", "a@{1}", "a\tb", "a\x7f"}
	for _, name := range append(good, bad...) {
		isGood := slices.Contains(good, name)
		if (CheckBranch(name) == nil) != isGood {
			t.Errorf("%q: %v", name, CheckBranch(name))
		}
		// as a ref, these are valid; as the name of a branch, they mean something else
		if git, err := exec.LookPath("git"); err == nil && name != "@" && name != "HEAD" && name != "-a" {
			if accepted := exec.Command(git, "check-ref-format", "refs/heads/"+name).Run() == nil; accepted != isGood {
				t.Errorf("%q: git accepts it: %v", name, accepted)
			}
		}
	}
	if hash := strings.Repeat("a1", 20); CheckBranch(hash) == nil {
		t.Error("a commit is taken for a branch")
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
	for verdict, ids := range map[string][]string{
		"new":     {"a/b", "meta-llama/Llama-3.1-8B", "a_b/c.d-DF11", "_a/_b-", "u/" + strings.Repeat("x", 96)},
		"old":     {"gpt2", "a/b--c", "a/b.", "a/b-", "a/b.git", "u/" + strings.Repeat("x", 97)},
		"refused": {"", "a/", "/b", "a/b/c", "a/b..c", "../b", "a/-b", "a/.b", "a/b c", "a/b?", "a/b\n", "é/b"},
	} {
		for _, id := range ids {
			if err := CheckNewRepo(id); (err == nil) != (verdict == "new") || IsRepo(id) != (verdict != "refused") {
				t.Errorf("%q: a repo %v, new %v, want %s", id, IsRepo(id), err, verdict)
			}
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
