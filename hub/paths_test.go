package hub

import (
	"errors"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

func TestValidPath(t *testing.T) {
	for _, good := range []string{"config.json", "a/b c/#?.txt", ".gitattributes", "..a", "a..b/c", "日本.txt"} {
		if err := ValidPath(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "../a", "a/../b", "a/..", "/a", "//a/b", "a//b", "a/", `a\b`, `..\a`, "C:x", "c:/x",
		"a\x00b", "a\nb", "a\u009bb", "a\x7fb", ".git/config", ".GIT/x", "./a", strings.Repeat("a", 5000)} {
		if err := ValidPath(bad); !errors.Is(err, wire.ErrUnsafePath) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func FuzzValidPath(f *testing.F) {
	f.Add("a/../b")
	f.Add(`a\b`)
	f.Fuzz(func(t *testing.T, name string) {
		if ValidPath(name) != nil {
			return
		}
		for seg := range strings.SplitSeq(name, "/") {
			if seg == "" || seg == "." || seg == ".." || strings.ContainsAny(seg, "\\\x00") {
				t.Errorf("%q was accepted", name)
			}
		}
	})
}

func TestValidRepoID(t *testing.T) {
	for _, good := range []string{"a/b", "meta-llama/Llama-3.1-8B", "a_b/c.d-DF11", "u/" + strings.Repeat("x", 96)} {
		if err := ValidRepoID(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a", "a/", "/b", "a/b/c", "a/b--c", "a/b..c", "a/-b", "a/b.", "a/b.git", "a/b c", "a/b?",
		"u/" + strings.Repeat("x", 97)} {
		if err := ValidRepoID(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestNextLink(t *testing.T) {
	for in, want := range map[string]string{
		``:                                     "",
		`<https://h/x?cursor=a,b>; rel="next"`: "https://h/x?cursor=a,b",
		`<https://h/1>; rel="prev", <https://h/2>; rel=next`: "https://h/2",
		`<https://h/1>; rel="xet-auth"`:                      "",
		`<https://h/1; rel="next"`:                           "",
		`garbage`:                                            "",
	} {
		if got := append(nextLink.FindStringSubmatch(in), "", "")[1]; got != want {
			t.Errorf("%s: got %q", in, got)
		}
	}
}
