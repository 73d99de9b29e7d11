package names

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPaths checks paths by both rules: what a repo may list, and what may be written.
func TestPaths(t *testing.T) {
	long := strings.Repeat("a", maxName)
	for verdict, paths := range map[string][]string{
		"safe": {"config.json", "a/b c/#.txt", ".gitattributes", "x/.gitignore", "..a", "a..b/c", "日本.txt", "cone.safetensors", "console/com",
			StateDir + "/" + Manifest, long},
		"listed": {"con.safetensors", "NUL", "x/con", "Aux .txt/b", "com1", "LPT².txt", "conin$", "ab:c", "a*b", "a?b", `a"b`, "a<b>|c", "a. ", "a./b",
			"a ", "x/.git/config", "x/.GIT", "GIT~1/config", long + "a"},
		"refused": {"a:b", "C:x", "c:/x", ".git", ".git/config", ".GIT/x", "", ".", "..", "../a", "a/../b", "a/..", "./a", "/a", "//a/b", "a//b", "a/",
			`a\b`, `..\a`, "a\x00b", "a\nb", "a\x7fb", "a\u009bb", "a\xffb", strings.Repeat("a/", 2500), strings.Repeat("ab/c", 2e3)},
	} {
		for _, path := range paths {
			if IsSafe(path) != (verdict == "safe") || IsListed(path) != (verdict != "refused") {
				t.Errorf("%.40q: safe %v, listed %v, want %s", path, IsSafe(path), IsListed(path), verdict)
			}
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
