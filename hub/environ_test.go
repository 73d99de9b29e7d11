package hub

import (
	"cmp"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestEnviron checks what the variables decide, as in the Python client.
func TestEnviron(t *testing.T) {
	dir := t.TempDir()
	file, other, big := filepath.Join(dir, "token"), filepath.Join(dir, "other"), filepath.Join(dir, "big")
	world.Write(t, file, "  hf_file\r\n")
	world.Write(t, other, "hf_other")
	world.Write(t, big, strings.Repeat("x", 64<<10+1))
	type found struct {
		cache, endpoint, token, source, publisher string
		offline                                   bool
	}
	inDir := func(token, source string) found { return found{cache: dir + "/hub", token: token, source: source} }
	for _, tt := range []struct {
		name string
		env  string // NAME=VALUE, separated by spaces
		want found
		err  string // part of it
	}{
		{"nothing set", "", found{cache: "/home/u/.cache/huggingface/hub"}, ""},
		{"XDG", "XDG_CACHE_HOME=/x", found{cache: "/x/huggingface/hub"}, ""},
		{"HF_HOME with tilde", "HF_HOME=~/hf XDG_CACHE_HOME=/x", found{cache: "/home/u/hf/hub"}, ""},
		{"HF_HOME with variable", "HF_HOME=$D/hf D=/data", found{cache: "/data/hf/hub"}, ""},
		{"HF_HOME with braces", "HF_HOME=${D}/${E}x D=/data E=e", found{cache: "/data/ex/hub"}, ""},
		{"HF_HOME with an unknown variable", "HF_HOME=/mnt/$share/${no}/$/x", found{cache: "/mnt/$share/${no}/$/x/hub"}, ""},
		{"tilde of a variable", "HF_HOME=$D D=~/hf", found{cache: "/home/u/hf/hub"}, ""},
		{"tilde elsewhere", "HF_HOME=/a/~/b", found{cache: "/a/~/b/hub"}, ""},
		{"XDG with variable", "XDG_CACHE_HOME=$D/x D=/data", found{cache: "/data/x/huggingface/hub"}, ""},
		{"cache apart", "HF_HOME=/h HF_HUB_CACHE=/c", found{cache: "/c"}, ""},
		{"cache by its old name", "HF_HOME=/h HUGGINGFACE_HUB_CACHE=~/c", found{cache: "/home/u/c"}, ""},
		{"cache by both names", "HF_HUB_CACHE=/c HUGGINGFACE_HUB_CACHE=/old", found{cache: "/c"}, ""},
		{"endpoint", "HF_HOME=/h HF_ENDPOINT=http://127.0.0.1:9//", found{cache: "/h/hub", endpoint: "http://127.0.0.1:9"}, ""},

		{"no token", "HF_HOME=/h", found{cache: "/h/hub"}, ""},
		{"token file", "HF_HOME=DIR", inDir("hf_file", "file "+file), ""},
		{"token file elsewhere", "HF_HOME=DIR HF_TOKEN_PATH=DIR/other", inDir("hf_other", "file "+other), ""},
		{"variable wins", "HF_HOME=DIR HF_TOKEN=\rhf_env\n", inDir("hf_env", "HF_TOKEN"), ""},
		{"empty variable counts as none", "HF_HOME=DIR HF_TOKEN=\n", inDir("hf_file", "file "+file), ""},
		{"implicit tokens off", "HF_HOME=DIR HF_TOKEN=hf_env HF_HUB_DISABLE_IMPLICIT_TOKEN=1", inDir("", ""), ""},
		{"a folder is no token file", "HF_HOME=DIR HF_TOKEN_PATH=DIR", inDir("", ""), "read token file"},
		{"a huge file is no token file", "HF_HOME=DIR HF_TOKEN_PATH=DIR/big", inDir("", ""), "read token file"},

		{"job without an identity", "HF_HOME=/h HF_TOKEN=hf_env HF_OIDC_RESOURCE=x", found{cache: "/h/hub"}, "no identity"},
		{"job of GitHub", "HF_HOME=/h HF_TOKEN=hf_env HF_OIDC_RESOURCE=me/x ACTIONS_ID_TOKEN_REQUEST_URL=https://x ACTIONS_ID_TOKEN_REQUEST_TOKEN=y",
			found{cache: "/h/hub", token: "hf_env", source: "HF_TOKEN", publisher: "me/x"}, ""},
		{"job of another CI", "HF_HOME=/h HF_TOKEN=hf_env HF_OIDC_RESOURCE=me/x HF_OIDC_ID_TOKEN=eyJ",
			found{cache: "/h/hub", token: "hf_env", source: "HF_TOKEN", publisher: "me/x"}, ""},

		{"offline: 1", "HF_HOME=/h HF_HUB_OFFLINE=1", found{cache: "/h/hub", offline: true}, ""},
		{"offline: on", "HF_HOME=/h HF_HUB_OFFLINE=on", found{cache: "/h/hub", offline: true}, ""},
		{"offline: Yes", "HF_HOME=/h HF_HUB_OFFLINE=Yes", found{cache: "/h/hub", offline: true}, ""},
		{"offline: TRUE", "HF_HOME=/h HF_HUB_OFFLINE=TRUE", found{cache: "/h/hub", offline: true}, ""},
		{"offline: 0", "HF_HOME=/h HF_HUB_OFFLINE=0", found{cache: "/h/hub"}, ""},
		{"offline: the other name", "HF_HOME=/h TRANSFORMERS_OFFLINE=1", found{cache: "/h/hub", offline: true}, ""},
		{"offline: the first name wins", "HF_HOME=/h HF_HUB_OFFLINE=0 TRANSFORMERS_OFFLINE=1", found{cache: "/h/hub"}, ""},
		{"offline: 2", "HF_HOME=/h HF_HUB_OFFLINE=2", found{cache: "/h/hub"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{}
			for pair := range strings.SplitSeq(strings.ReplaceAll(tt.env, "DIR", dir), " ") {
				name, value, _ := strings.Cut(pair, "=")
				env[name] = value
			}
			e, err := Environ(func(name string) string { return env[name] }, "/home/u")
			got := found{e.CacheDir, e.Endpoint, e.Token, e.TokenSource, "", e.Offline}
			if e.Publisher != nil {
				got.publisher = e.Publisher.Resource
			}
			tt.want.endpoint = cmp.Or(tt.want.endpoint, publicEndpoint)
			if got != tt.want || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %+v, %v", got, err)
			}
			if publisher := strings.Contains(tt.err, "identity"); errors.Is(err, ErrTrustedPublisher) != publisher || publisher && Hint(err) == "" {
				t.Errorf("%v, hint %q", err, Hint(err))
			}
		})
	}
}

// TestEnvironOfAHomeWithADollar checks that a home keeps its name.
func TestEnvironOfAHomeWithADollar(t *testing.T) {
	for _, home := range []string{"/home/a$b", "/home/${x}"} {
		e, err := Environ(func(string) string { return "" }, home)
		if want := home + "/.cache/huggingface/hub"; err != nil || e.CacheDir != want {
			t.Errorf("%s: %s, %v", home, e.CacheDir, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, opt := range map[string]Options{
		"scheme":            {Connection: Connection{Endpoint: "ftp://x"}},
		"user in endpoint":  {Connection: Connection{Endpoint: "https://u:p@x"}},
		"query":             {Connection: Connection{Endpoint: "https://x?a=b"}},
		"line end in token": {Connection: Connection{Token: "hf_a\nX-Evil: 1"}},
	} {
		if _, err := New(opt); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
