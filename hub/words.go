package hub

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

// inWords says in plain words why a request got no answer, without the names that Go gives its
// system calls and packages. [Error.Error] keeps those for -v and for reports.
func inWords(err error) string {
	if isA[*cause](err) {
		return oneLine(err.Error())
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		return "the proxy: " + inWords(op.Err)
	}
	name, isLookup := errors.AsType[*net.DNSError](err)
	stale, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	late, isNet := errors.AsType[net.Error](err)
	switch {
	case isLookup && name.IsNotFound:
		return fmt.Sprintf("no host is called %s", oneLine(name.Name))
	case isLookup:
		return fmt.Sprintf("the name %s can't be looked up", oneLine(name.Name))
	case isA[x509.UnknownAuthorityError](err):
		return "its certificate is signed by an unknown authority"
	case isA[x509.HostnameError](err):
		return "its certificate is for another name"
	case isInvalid && stale.Reason == x509.Expired:
		return "its certificate has expired or isn't valid yet"
	case isNet && late.Timeout():
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was cut off"
	case strings.Contains(err.Error(), noTLS):
		return "it doesn't speak https"
	case strings.Contains(err.Error(), noHTTP):
		return "it doesn't speak http"
	}
	for {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
			err = op.Err
		} else if call, ok := errors.AsType[*os.SyscallError](err); ok {
			err = call.Err
		} else {
			return oneLine(err.Error())
		}
	}
}

// What crypto/tls and net/http say, without a type, about a server of the other scheme.
const (
	noTLS  = "not look like a TLS handshake"
	noHTTP = "malformed HTTP response"
)

// A notConnectedError says that nothing has answered since the program began.
type notConnectedError struct {
	host string
	err  error
}

func (e *notConnectedError) Error() string {
	return fmt.Sprintf("%v to %s: %v", errNoConnection, e.host, e.err)
}

func (e *notConnectedError) inWords() string {
	return fmt.Sprintf("%v to %s: %s", errNoConnection, e.host, inWords(e.err))
}

func (e *notConnectedError) Unwrap() []error { return []error{errNoConnection, e.err} }
