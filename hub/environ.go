package hub

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/df11-convert/df11-convert/hub/internal/wire"
	"github.com/df11-convert/df11-convert/internal/disk"
)

// Environ returns the options from the HF_* variables and the token file, read as the Python client
// does. home is the user's home directory. The error wraps ErrTrustedPublisher if HF_OIDC_RESOURCE
// is set but there's no identity. The options then lack only the token, so a caller with its own
// token may go on.
func Environ(getenv func(string) string, home string) (Options, error) {
	path := func(def string, names ...string) string {
		for _, name := range names {
			if p := getenv(name); p != "" {
				return expandPath(p, getenv, home)
			}
		}
		return expandPath(def, getenv, home)
	}
	cache := cmp.Or(getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	hfHome := path(filepath.Join(cache, "huggingface"), "HF_HOME")
	opt, err := Options{}, error(nil)
	opt.Endpoint = strings.TrimRight(cmp.Or(getenv("HF_ENDPOINT"), wire.PublicEndpoint), "/")
	opt.CacheDir = path(filepath.Join(hfHome, "hub"), "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
	opt.Offline = truthy(getenv("HF_HUB_OFFLINE")) || truthy(getenv("TRANSFORMERS_OFFLINE"))
	if opt.Publisher, err = publisherOf(getenv); err == nil {
		opt.Token, opt.TokenSource, err = findToken(getenv,
			path(filepath.Join(hfHome, "token"), "HF_TOKEN_PATH"))
	}
	return opt, cmp.Or(checkCertificates(getenv("SSL_CERT_FILE")), err)
}

// checkCertificates refuses a file of root certificates that Go would silently ignore.
func checkCertificates(file string) error {
	if runtime.GOOS == "js" || file == "" { // a browser has its own
		return nil
	}
	pem, err := disk.ReadInput(file, 64<<20)
	switch {
	case err != nil:
		return fmt.Errorf("SSL_CERT_FILE: %w", err)
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		return fmt.Errorf("SSL_CERT_FILE: %s holds no certificate", file)
	}
	return nil
}

// findToken returns the token of the variables or the file, and its source: "HF_TOKEN", "file …".
func findToken(getenv func(string) string, file string) (token, source string, err error) {
	if truthy(getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		return "", "", nil
	}
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if token := cleanToken(getenv(name)); token != "" {
			return token, name, nil
		}
	}
	data, err := disk.ReadInput(file, 64<<10)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("read token file: %w", err)
	}
	if token = cleanToken(string(data)); token == "" {
		return "", "", nil
	}
	return token, "file " + file, nil
}

// cleanToken removes line ends and surrounding spaces.
func cleanToken(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\r", "", "\n", "").Replace(s))
}

// truthy is the Python client's rule for switches.
func truthy(v string) bool {
	switch strings.ToUpper(v) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// expandPath expands ~ at the start and $VAR anywhere.
func expandPath(p string, getenv func(string) string, home string) string {
	p = os.Expand(p, getenv)
	if p == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return p
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
			wire.ErrTrustedPublisher)
	}
	return p, nil
}
