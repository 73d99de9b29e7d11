package hub

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
)

// env makes a getenv from pairs.
func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

func TestEnvironPaths(t *testing.T) {
	for _, tt := range []struct {
		name, cache, endpoint string
		env                   func(string) string
	}{
		{"nothing set", "/home/u/.cache/huggingface/hub", wire.PublicEndpoint, env()},
		{"XDG", "/x/huggingface/hub", wire.PublicEndpoint, env("XDG_CACHE_HOME", "/x")},
		{"HF_HOME with tilde", "/home/u/hf/hub", wire.PublicEndpoint, env("HF_HOME", "~/hf", "XDG_CACHE_HOME", "/x")},
		{"HF_HOME with variable", "/data/hf/hub", wire.PublicEndpoint, env("HF_HOME", "$D/hf", "D", "/data")},
		{"cache apart", "/c", wire.PublicEndpoint, env("HF_HOME", "/h", "HF_HUB_CACHE", "/c", "HUGGINGFACE_HUB_CACHE", "/old")},
		{"legacy cache", "/old", wire.PublicEndpoint, env("HF_HOME", "/h", "HUGGINGFACE_HUB_CACHE", "/old")},
		{"endpoint", "/h/hub", "http://127.0.0.1:9", env("HF_HOME", "/h", "HF_ENDPOINT", "http://127.0.0.1:9//")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Environ(tt.env, "/home/u")
			if err != nil {
				t.Fatal(err)
			}
			if e.CacheDir != tt.cache || e.Endpoint != tt.endpoint {
				t.Errorf("got cache %q, endpoint %q", e.CacheDir, e.Endpoint)
			}
		})
	}
}

func TestEnvironToken(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("  hf_file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("hf_other"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, token, source string
		env                 func(string) string
	}{
		{"none", "", "", env("HF_HOME", filepath.Join(dir, "empty"))},
		{"file", "hf_file", "file " + file, env("HF_HOME", dir)},
		{"file elsewhere", "hf_other", "file " + other, env("HF_HOME", dir, "HF_TOKEN_PATH", other)},
		{"variable wins", "hf_env", "HF_TOKEN", env("HF_HOME", dir, "HF_TOKEN", " hf_env\n", "HUGGING_FACE_HUB_TOKEN", "hf_old")},
		{"legacy variable", "hf_old", "HUGGING_FACE_HUB_TOKEN", env("HF_HOME", dir, "HUGGING_FACE_HUB_TOKEN", "hf_old")},
		{"empty variable counts as none", "hf_file", "file " + file, env("HF_HOME", dir, "HF_TOKEN", " \n")},
		{"implicit tokens off", "", "", env("HF_HOME", dir, "HF_TOKEN", "hf_env", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Environ(tt.env, "/home/u")
			if err != nil {
				t.Fatal(err)
			}
			if e.Token != tt.token || e.TokenSource != tt.source {
				t.Errorf("got %q from %q, want %q from %q", e.Token, e.TokenSource, tt.token, tt.source)
			}
		})
	}
}

func TestEnvironTrustedPublisherNeedsAnIdentity(t *testing.T) {
	e, err := Environ(env("HF_OIDC_RESOURCE", "x", "HF_TOKEN", "hf_env", "HF_HOME", "/h"), "/home/u")
	if !errors.Is(err, wire.ErrTrustedPublisher) || Hint(err) == "" {
		t.Fatalf("got %v", err)
	}
	if e.CacheDir != "/h/hub" || e.Token != "" {
		t.Errorf("the rest must be usable, got %+v", e)
	}
	for name, getenv := range map[string]func(string) string{
		"GitHub":   env("HF_OIDC_RESOURCE", "me/x", "HF_TOKEN", "hf_env", "HF_HOME", "/h", "ACTIONS_ID_TOKEN_REQUEST_URL", "https://x", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "y"),
		"other CI": env("HF_OIDC_RESOURCE", "me/x", "HF_TOKEN", "hf_env", "HF_HOME", "/h", "HF_OIDC_ID_TOKEN", "eyJ"),
	} {
		if e, err := Environ(getenv, "/home/u"); err != nil || e.Publisher == nil || e.Publisher.Resource != "me/x" || e.Token != "hf_env" {
			t.Errorf("%s: got %+v, %v", name, e, err)
		}
	}
}

func TestEnvironSwitches(t *testing.T) {
	for v, want := range map[string]bool{"1": true, "on": true, "Yes": true, "TRUE": true, "0": false, "": false, "2": false} {
		e, err := Environ(env("HF_HUB_OFFLINE", v, "HF_HOME", "/h"), "/home/u")
		if err != nil || e.Offline != want {
			t.Errorf("HF_HUB_OFFLINE=%q: offline %v, %v", v, e.Offline, err)
		}
	}
	if e, err := Environ(env("TRANSFORMERS_OFFLINE", "1", "HF_HOME", "/h"), "/home/u"); err != nil || !e.Offline {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestATokenFileIsAShortFile(t *testing.T) {
	noEnv := func(string) string { return "" }
	if _, _, err := findToken(noEnv, t.TempDir()); err == nil {
		t.Error("a folder was taken for a token file")
	}
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 64<<10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := findToken(noEnv, big); err == nil {
		t.Error("a huge file was taken for a token file")
	}
}

func TestNewRefuses(t *testing.T) {
	for name, opt := range map[string]Options{
		"scheme":            {Endpoint: "ftp://x"},
		"user in endpoint":  {Endpoint: "https://u:p@x"},
		"query":             {Endpoint: "https://x?a=b"},
		"line end in token": {Token: "hf_a\nX-Evil: 1"},
		"negative":          {RangeBytes: -1},
	} {
		if _, err := New(opt); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
