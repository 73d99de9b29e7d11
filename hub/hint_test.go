package hub

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// TestHints checks the hints of failures that need another network, and that each names the setting
// of the user's that is in use, and its value.
func TestHints(t *testing.T) {
	const mirror = "http://mirror:8080"
	for _, c := range []struct {
		err  Error
		want hint.Hint
		says string
	}{
		{Error{Err: errNoConnection, Endpoint: publicEndpoint}, hint.Network, ""},
		{Error{Err: errNoConnection, Endpoint: mirror, variable: "DF11_PUSH_ENDPOINT"}, hint.NetworkTo, "DF11_PUSH_ENDPOINT, which is " + mirror},
		{Error{Err: ErrNotHub, Endpoint: publicEndpoint}, hint.NotHub, publicEndpoint},
		{Error{Err: ErrNotHub, Endpoint: mirror, variable: "HF_ENDPOINT"}, hint.NotHubAt, "HF_ENDPOINT, which is " + mirror},
		{Error{Err: errPage, Endpoint: publicEndpoint}, hint.WebPage, "login page"},
		{Error{Err: errors.New("first record does not look like a TLS handshake")}, hint.AnyScheme, "https://"},
		{Error{Err: x509.UnknownAuthorityError{}}, hint.Certificate, "SSL_CERT_FILE"},
		{Error{Err: x509.HostnameError{Certificate: &x509.Certificate{}}, Endpoint: mirror, variable: "HF_ENDPOINT"}, hint.NotHubAt, mirror},
		{Error{Err: x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}}, hint.CertificateTime, "clock"},
		{Error{Err: ErrForbidden}, hint.Forbidden, hint.Login.String()},
		{Error{Err: ErrForbidden, login: "unset X"}, hint.Forbidden, "unset X"},
		{Error{Err: errLinks, Attempts: 2}, hint.Again, ""},
		{Error{Err: errTooLong}, hint.RequestSize, ""},
		{Error{Err: ErrRevisionNotFound, URL: "https://hub/api/models/a/b/revision/main", Repo: "a/b"}, hint.NoMain, "a/b"},
		{Error{Err: ErrCorrupt}, hint.Corrupt, ""},
		{Error{Err: errStale}, hint.StaleLinks, ""},
	} {
		if got := hintOf(&c.err); !c.want.Is(got) || !strings.Contains(got, c.says) {
			t.Errorf("%v: %s", c.err.Err, got)
		}
	}
}

// TestHintsNameTheProxy checks that a connection that a proxy of the environment should have made
// isn't blamed on the Hub's address, and that the proxy's password isn't shown.
func TestHintsNameTheProxy(t *testing.T) {
	refused := &net.OpError{Op: "proxyconnect", Err: syscall.ECONNREFUSED}
	for _, variable := range []string{"HTTPS_PROXY", "https_proxy"} {
		t.Setenv("HTTPS_PROXY", "")
		t.Setenv("https_proxy", "")
		t.Setenv(variable, "http://me:secret@proxy:3128")
		e := &Error{Err: fmt.Errorf("%w: %w", errNoConnection, refused), URL: publicEndpoint + "/api", Endpoint: publicEndpoint}
		if got := hintOf(e); !hint.NetworkProxy.Is(got) || !strings.Contains(got, variable) || !strings.Contains(got, "http://proxy:3128") || strings.Contains(got, "secret") {
			t.Errorf("%s: %s", variable, got)
		}
	}
}
