package model

import (
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// TestDisclosedByMetadata checks what counts as a path or a token in the metadata of a weight file.
// Tokens are put together here, so that secret scanners leave this file alone.
func TestDisclosedByMetadata(t *testing.T) {
	token := "hf_" + strings.Repeat("aB", 17)
	for _, c := range []struct{ key, value, want string }{
		{"format", "pt", ""},
		{"modelspec.thumbnail", "data:image/jpeg;base64,/9j/4AAQSkZJRg==", ""},
		{"image", "/9j/" + strings.Repeat("A", maxPath), ""},
		{"step", "3/4 of 10, see https://example.org/a/b and org/name", ""},
		{"dir", "/home/me/x", `"dir" holds "/home/me/x", a path on a disk`},
		{"dirs", `{"D:\\data\\a": [1], "/b/c": 2}`, `"dirs" holds "D:\\\\data\\\\a", a path on a disk`},
		{"args", "['--out', '/mnt/a']", `"args" holds "/mnt/a", a path on a disk`},
		{"args", "x --out=~/runs", `"args" holds "~/runs", a path on a disk`},
		{"/home/me/x", "1", `"/home/me/x" holds "/home/me/x", a path on a disk`},
		{"cmd", "--token " + token, `"cmd" holds what looks like an access token of Hugging Face`},
		{token, "/a/b", "a key holds what looks like an access token of Hugging Face"},
	} {
		var texts []string
		for _, d := range inEntry(safetensors.MetadataEntry{Key: c.key, Value: c.value}) {
			texts = append(texts, d.text)
			if d.token != strings.Contains(c.want, "access token") {
				t.Errorf("%.60s: a token: %v", c.key, d.token)
			}
		}
		got := strings.Join(texts, "; ")
		if got != c.want || strings.Contains(got, token) {
			t.Errorf("%.60s: %.60s: got %s, want %s", c.key, c.value, got, c.want)
		}
	}
}
