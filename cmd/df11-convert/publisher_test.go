package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// TestTrustedPublishing: a job without a stored token publishes to the repo that trusts it, whose name it need not repeat, and
// nowhere else. Its token goes to requests about the target alone; the source is asked with the stored token, if there is one.
func TestTrustedPublishing(t *testing.T) {
	s := hubtest.Start(t, hubtest.WithPublisher("acme/model-DF11", "acme/ci"), hubtest.WithUser("hf_reader", hubtest.User{Name: "reader", ReadOnly: true}))
	s.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 2}))
	s.AddRepo("acme/model-DF11", map[string][]byte{"README.md": []byte("soon\n")})
	for name, value := range s.JobEnv("acme/ci") {
		t.Setenv(name, value)
	}
	t.Setenv("HF_ENDPOINT", s.URL)
	t.Setenv("HF_HOME", filepath.Join(t.TempDir(), "home"))
	t.Setenv("HF_OIDC_RESOURCE", "acme/model-DF11")
	for _, stored := range []string{"", "hf_reader"} {
		t.Setenv("HF_TOKEN", stored)
		s.ResetLog()
		if out := must(t, "org/model", "--push", "--quiet", "--force"); !strings.Contains(out, s.URL+"/acme/model-DF11") {
			t.Errorf("published %s", out)
		}
		wrote := 0
		for _, r := range s.Requests() {
			auth := r.Header.Get("Authorization")
			switch {
			case r.Host != hubtest.HostHub:
			case strings.Contains(r.Path, "acme/model-DF11"):
				wrote++
				if !strings.HasPrefix(auth, "Bearer hf_jwt_") {
					t.Errorf("%s %s with %q", r.Method, r.Path, auth)
				}
			case strings.Contains(r.Path, "org/model") && strings.TrimPrefix(auth, "Bearer ") != stored:
				t.Errorf("%s %s with %q, stored is %q", r.Method, r.Path, auth, stored)
			case strings.Contains(r.Path, "whoami"):
				t.Error("the Hub was asked who a job is")
			}
		}
		if wrote == 0 {
			t.Error("nothing was asked of the target")
		}
		must(t, "verify", "acme/model-DF11", "--level", "proof")
	}
	if code, _, diag := program(t, "org/model", "--push", "--repo-id", "acme/other"); code != exitUsage || !strings.Contains(diag, "HF_OIDC_RESOURCE") {
		t.Errorf("exit %d: %s", code, diag)
	}
	t.Setenv("HF_OIDC_RESOURCE", "acme/unknown")
	if code, _, diag := program(t, "org/model", "--push"); code != exitAuth || !strings.Contains(diag, "must list this workflow as a trusted publisher") {
		t.Errorf("exit %d: %s", code, diag)
	}
	t.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
	if code, _, diag := program(t, "org/model", "--push"); code != exitAuth || !strings.Contains(diag, "id-token: write") {
		t.Errorf("exit %d: %s", code, diag)
	}
}
