package names

import (
	"strings"
	"testing"
)

// TestAccessTokens checks which texts look like access tokens. Tokens are put together here, so that
// secret scanners leave this file alone.
func TestAccessTokens(t *testing.T) {
	for _, c := range []struct{ text, issuer string }{
		{"hf_" + strings.Repeat("aB", 17), "Hugging Face"},
		{`{"token": "hf_` + strings.Repeat("a", 34) + `"}`, "Hugging Face"},
		{"ghp_" + strings.Repeat("a1", 18), "GitHub"},
		{"github_pat_" + strings.Repeat("a_", 41), "GitHub"},
		{"AKIA" + strings.Repeat("A2", 8), "AWS"},
		{"sk-" + strings.Repeat("aB3", 16), "OpenAI or Anthropic"},
		{"sk-proj-" + strings.Repeat("aB-_", 16), "OpenAI or Anthropic"},
		{"AKIA" + strings.Repeat("A2", 8) + " hf_" + strings.Repeat("a", 34), "AWS"},
		{"", ""}, {"hf_token", ""}, {"hf_" + strings.Repeat("a", 33), ""}, {"hf_" + strings.Repeat("a", 35), ""},
		{"xhf_" + strings.Repeat("a", 34), ""}, {"sk-learn", ""}, {"AKIA" + strings.Repeat("a2", 8), ""},
		{strings.Repeat("0a", 32), ""}, // a hash
	} {
		issuer, at := AccessToken("\n" + c.text)
		if issuer != c.issuer || issuer != "" && at == 0 {
			t.Errorf("%.60q: a token of %q at %d, want %q", c.text, issuer, at, c.issuer)
		}
	}
}
