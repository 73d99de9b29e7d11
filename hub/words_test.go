package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestNetworkInWords checks what a person reads about a connection that failed, in a progress line
// and as an error, and that the whole error keeps what a bug report needs.
func TestNetworkInWords(t *testing.T) {
	op := func(op string, cause error) error {
		return &net.OpError{Op: op, Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443}, Err: cause}
	}
	untrusted := func(cause error) error { return &tls.CertificateVerificationError{Err: cause} }
	expired := x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}
	for _, c := range []struct {
		err  error
		want string
	}{
		{op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connection refused"},
		{op("read", os.NewSyscallError("read", syscall.ECONNRESET)), "connection reset by peer"},
		{op("proxyconnect", op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED))), "the proxy: connection refused"},
		{op("dial", &net.DNSError{Err: "no such host", Name: "hub.tset", Server: "10.0.0.53:53", IsNotFound: true}), "no host is called hub.tset"},
		{op("dial", &net.DNSError{Err: "server misbehaving", Name: "hub.test"}), "the name hub.test can't be looked up"},
		{op("dial", os.ErrDeadlineExceeded), "no answer in time"}, {context.DeadlineExceeded, "no answer in time"},
		{untrusted(x509.UnknownAuthorityError{}), "its certificate is signed by an unknown authority"},
		{untrusted(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}), "its certificate is for another name"},
		{untrusted(expired), "its certificate has expired or isn't valid yet"},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), "the connection was cut off"},
		{op("read", errors.New("tls: first record does "+noTLS)), "it doesn't speak https"},
		{errors.New("net/http: HTTP/1.x transport connection broken: " + noHTTP + ` "\x15"`), "it doesn't speak http"},
		{errNoAnswer, errNoAnswer.Error()}, {errors.New("something\nnew"), "something new"},
	} {
		e := &Error{Op: "read a list", URL: "https://hub.test/api", Err: c.err}
		if got := e.waitReason(1); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
		first := &Error{Err: &notConnectedError{"hub.test", c.err}}
		if got := first.Brief(); got != "no connection to hub.test: "+c.want {
			t.Errorf("%v: at first %q", c.err, got)
		}
		if got := e.Brief(); !isA[*cause](c.err) && got != "read a list: hub.test: "+c.want {
			t.Errorf("%v: later %q", c.err, got)
		}
		for _, whole := range []*Error{e, first} {
			if !strings.Contains(whole.Error(), oneLine(c.err.Error())) || !errors.Is(whole, c.err) {
				t.Errorf("%v: as a whole %v", c.err, whole)
			}
		}
	}
}

// TestTheAnswerInWords checks what is said about an answer that no Hub sends.
func TestTheAnswerInWords(t *testing.T) {
	for body, want := range map[string]string{
		"hello": "it isn't JSON", "[1]": "it's JSON of the type array", `{"name": 5}`: "its Name is of the type number", `{"name": {}}`: "its Name is of the type object",
		`{"name": "m`: "the answer is cut off",
	} {
		c, _ := testTransport(t, script(says(200, body)))
		c.opt.Patience = 0
		if _, err := whoAmI(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "json:") {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
