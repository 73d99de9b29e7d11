package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestTrustedPublishing checks that a job without a stored token publishes to the repo that trusts
// it, without naming it, and nowhere else. Only requests about the target carry its token. Requests
// about the source carry the stored token, if there is one.
func TestTrustedPublishing(t *testing.T) {
	s := startHub(t, "", hubtest.WithPublisher("acme/model-DF11", "acme/ci"), hubtest.WithUser("hf_reader", hubtest.User{Name: "reader", ReadOnly: true}))
	s.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 2}))
	s.AddRepo("acme/model-DF11", map[string][]byte{"README.md": []byte("soon\n")})
	for name, value := range s.JobEnv("acme/ci") {
		t.Setenv(name, value)
	}
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
	ends(t, exitUsage, "HF_OIDC_RESOURCE", "org/model", "--push", "--repo-id", "acme/other")
}

// TestTargetsOfAList checks that a list's targets whose namespace isn't known have no name, so that
// nobody asks the Hub about the repos of a user called "you".
func TestTargetsOfAList(t *testing.T) {
	s := startHub(t, "hf_secret", hubtest.WithPublisher("acme/model-DF11", "acme/ci"), hubtest.WithUser("hf_secret", hubtest.User{Name: "tester"}))
	list := filepath.Join(t.TempDir(), "list.yaml")
	targets := func(push bool, models string) (all []string) {
		world.Write(t, list, "models: ["+models+"]\n")
		u, _ := captured(t)
		listed, err := (&convertFlags{target: targetFlags{push: push}}).models(t.Context(), u, list)
		world.Must(t, err)
		for _, m := range listed {
			all = append(all, m.repo)
		}
		return all
	}
	const three = "org/model, {source: org/a, repo-id: other}, {source: org/b, repo-id: lab/b}"
	if repos := targets(false, "org/model"); !slices.Equal(repos, []string{""}) {
		t.Errorf("without a push: %q", repos)
	}
	if repos := targets(true, three); !slices.Equal(repos, []string{"tester/model-DF11", "tester/other", "lab/b"}) {
		t.Errorf("%q", repos)
	}
	for name, value := range s.JobEnv("acme/ci") {
		t.Setenv(name, value)
	}
	t.Setenv("HF_OIDC_RESOURCE", "acme/model-DF11")
	if repos := targets(true, three); !slices.Equal(repos, []string{"acme/model-DF11", "", "lab/b"}) {
		t.Errorf("for one repo: %q", repos)
	}
}

// TestPushEndpoint reads sources from one Hub and publishes to another. Only the second one gets
// the token, and DF11 models are found there. If the source needs a token, the error says so.
// Without the variable, publishing to a read-only mirror prints a hint.
func TestPushEndpoint(t *testing.T) {
	home, mirror := hubtest.Start(t), startHub(t, "hf_secret")
	mirror.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 2}))
	mirror.AddModel("org/gated", hubtest.NewLlama(2, hubtest.ModelOptions{Hidden: 32, Vocab: 64, Layers: 2}))
	mirror.Configure("org/gated", hubtest.Gated("auto"))
	mirror.Inject(hubtest.Fault{Method: "POST", Times: hubtest.Always, Action: hubtest.Status(405, nil, `{"detail":"Method Not Allowed"}`)})
	ends(t, exitError, "set DF11_PUSH_ENDPOINT to the Hub", "org/model", "--push", "--repo-id", "me/out")
	t.Setenv("DF11_PUSH_ENDPOINT", "hub.test")
	ends(t, exitUsage, `"hub.test" isn't an http:// or https:// address`, "org/model", "--push")
	t.Setenv("DF11_PUSH_ENDPOINT", home.URL+"/")
	mirror.ResetLog()
	if out := must(t, mirror.URL+"/org/model", "--push", "--quiet", "--private", "--repo-id", home.URL+"/me/out"); !strings.Contains(out, home.URL+"/me/out") {
		t.Errorf("published %s", out)
	}
	must(t, "verify", "me/out")
	ends(t, exitAuth, hint.TwoHubs.With("variable", "DF11_PUSH_ENDPOINT").String(), "plan", "org/gated")
	for _, r := range mirror.Requests() {
		if r.Header.Get("Authorization") != "" || strings.Contains(r.Path, "me/out") {
			t.Errorf("the mirror was asked %s %s with %q", r.Method, r.Path, r.Header.Get("Authorization"))
		}
	}
	if home.Count("", "*org/model*") > 0 || home.Count("POST", "*/commit/*") == 0 {
		t.Error("the other Hub was asked for the source, or for no commit")
	}
	t.Setenv("DF11_PUSH_ENDPOINT", mirror.URL+"/") // one Hub after all
	mirror.ResetLog()
	must(t, "plan", "org/model")
	if auth := mirror.Requests()[0].Header.Get("Authorization"); auth != "Bearer hf_secret" {
		t.Errorf("asked with %q", auth)
	}
}
