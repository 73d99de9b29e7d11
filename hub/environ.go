package hub

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Environ returns the options from the HF_* variables and the token file, read as constants.py of
// huggingface_hub does, except that an empty variable counts as none. getenv returns a variable's
// value; nil is os.Getenv. home is the user's home directory. The error wraps ErrTrustedPublisher
// if HF_OIDC_RESOURCE is set but there's no identity. The options then lack only the token, so a
// caller with its own token may go on.
func Environ(getenv func(string) string, home string) (Options, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	path := func(name, def string) string {
		return expandPath(cmp.Or(getenv(name), def), getenv, home)
	}
	cache := cmp.Or(getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	hfHome := path("HF_HOME", filepath.Join(cache, "huggingface"))
	opt, err := Options{}, error(nil)
	opt.Endpoint = strings.TrimRight(cmp.Or(getenv("HF_ENDPOINT"), publicEndpoint), "/")
	if opt.Endpoint != publicEndpoint {
		opt.EndpointSource = "HF_ENDPOINT"
	}
	opt.CacheDir = path("HF_HUB_CACHE",
		cmp.Or(getenv("HUGGINGFACE_HUB_CACHE"), filepath.Join(hfHome, "hub")))
	opt.Offline = truthy(cmp.Or(getenv("HF_HUB_OFFLINE"), getenv("TRANSFORMERS_OFFLINE")))
	if opt.Publisher, err = publisherOf(getenv); err == nil {
		file := path("HF_TOKEN_PATH", filepath.Join(hfHome, "token"))
		opt.Token, opt.TokenSource, err = findToken(getenv, file)
		if opt.TokenSource == fromFile+file {
			opt.TokenFile = file
		}
	}
	return opt, err
}

// findToken returns the token of the variables or the file, and its source: "HF_TOKEN", "file …".
func findToken(getenv func(string) string, file string) (token, source string, err error) {
	if truthy(getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		return "", "", nil
	}
	// huggingface_hub still reads the second name, in utils/_auth.py
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if token = cleanToken(getenv(name)); token != "" {
			return token, name, nil
		}
	}
	if token, err = readToken(context.Background(), file); token == "" || err != nil {
		return "", "", err
	}
	return token, fromFile + file, nil
}

// fromFile begins the source of a token from a file.
const fromFile = "file "

// cleanToken removes line ends and surrounding spaces.
func cleanToken(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\r", "", "\n", "").Replace(s))
}

// truthy is _is_true of the Python client's constants.py.
func truthy(v string) bool {
	switch strings.ToUpper(v) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// variable matches what Python's os.path.expandvars takes for a variable on every system.
var variable = regexp.MustCompile(`\$(?:(\w+)|\{([^}]*)\})`)

// expandPath expands ~ at the start, and then the variables that are set. As Python's
// os.path.expanduser and expandvars, it leaves the others as they are.
func expandPath(p string, getenv func(string) string, home string) string {
	if p == "~" || strings.HasPrefix(p, "~") && os.IsPathSeparator(p[1]) {
		p = filepath.Join(home, p[1:])
	}
	return variable.ReplaceAllStringFunc(p, func(v string) string {
		name := variable.FindStringSubmatch(v)
		return cmp.Or(getenv(cmp.Or(name[1], name[2])), v)
	})
}

// publisherOf returns the publisher that the Python client's variables describe, or nil.
func publisherOf(getenv func(string) string) (*Publisher, error) {
	p := &Publisher{
		Resource:     strings.TrimSpace(getenv("HF_OIDC_RESOURCE")),
		Identity:     cleanToken(getenv("HF_OIDC_ID_TOKEN")),
		RequestURL:   getenv("ACTIONS_ID_TOKEN_REQUEST_URL"),
		RequestToken: getenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
	}
	switch {
	case p.Resource == "":
		return nil, nil //nolint:nilnil // as promised
	case p.Identity == "" && (p.RequestURL == "" || p.RequestToken == ""):
		return nil, fmt.Errorf("%w: HF_OIDC_RESOURCE is set, but this job has no identity to show",
			ErrTrustedPublisher)
	}
	return p, nil
}
