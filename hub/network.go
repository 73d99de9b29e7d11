//go:build !js

package hub

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// hidesRedirects reports whether the sender follows redirects unseen.
const hidesRedirects = false

// newRoundTripper speaks HTTP/1.1 only. Over HTTP/2, all ranges of a file would share one TCP
// connection, and CDNs limit each connection: https://github.com/huggingface/hf_transfer exists for
// that. Proxies come from the environment, and Go reads custom CAs from SSL_CERT_FILE. A proxy that
// refuses CONNECT, as Squid does with 503 if it can't reach the host, may be out of order.
func newRoundTripper(governor *Governor) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
		if !governor.answered.Load() {
			d.Timeout = firstContact
		}
		return d.DialContext(ctx, network, addr)
	}
	return &http.Transport{
		Proxy: proxyFor,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request,
			resp *http.Response) error {
			switch resp.StatusCode {
			case http.StatusOK:
				return nil
			case http.StatusProxyAuthRequired:
				return fmt.Errorf("%w: %s", errProxy, resp.Status)
			}
			return fmt.Errorf("%w: %s", errNoTunnel, resp.Status)
		},
		DialContext:           dial,
		Protocols:             protocols,
		TLSHandshakeTimeout:   20 * time.Second,
		ExpectContinueTimeout: time.Second, // as Go's and curl's; then the body is sent anyway
		MaxIdleConns:          4 * maxTransfers,
		MaxIdleConnsPerHost:   2 * maxTransfers,
		IdleConnTimeout:       90 * time.Second,
	}
}

// proxyFor returns the proxy of a request, as http.ProxyFromEnvironment does. That one goes
// directly to the host if it can't read the variable, and a password with a bare % is enough for
// that: https://pkg.go.dev/golang.org/x/net/http/httpproxy. A network that demands a proxy would be
// bypassed, so this is an error here, unless the host has no proxy anyway.
func proxyFor(r *http.Request) (*url.URL, error) {
	name, value := proxyVariable(r.URL.Scheme)
	if value != "" && !isProxy(value) && !isDirect(r.URL) {
		return nil, fmt.Errorf("%s is %w", name, errBadProxy)
	}
	return http.ProxyFromEnvironment(r)
}

// isDirect reports whether the host of a URL has no proxy, because it's this machine or NO_PROXY
// names it. The rules are those of net/http, which it doesn't export:
// https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config.
func isDirect(u *url.URL) bool {
	host, port := strings.ToLower(u.Hostname()), cmp.Or(u.Port(), defaultPorts[u.Scheme])
	ip, _ := netip.ParseAddr(host)
	ip = ip.Unmap()
	if host == "localhost" || ip.IsLoopback() {
		return true
	}
	list := cmp.Or(os.Getenv("NO_PROXY"), os.Getenv("no_proxy"))
	return slices.ContainsFunc(strings.Split(list, ","), func(entry string) bool {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if block, err := netip.ParsePrefix(entry); err == nil {
			return block.Contains(ip)
		}
		name, only, err := net.SplitHostPort(entry)
		if err != nil {
			name, only = entry, ""
		}
		if entry == "*" || name == "" || only != "" && only != port {
			return entry == "*"
		}
		if ip.IsValid() {
			named, err := netip.ParseAddr(name)
			return err == nil && named.Unmap() == ip
		}
		domain, below := strings.CutPrefix(name, "*.")
		if !below {
			domain, below = strings.CutPrefix(name, ".")
		}
		return strings.HasSuffix(host, "."+domain) || !below && host == domain
	})
}

// isProxy reports whether a value is an address that net/http takes for a proxy: a host, with or
// without a scheme, user, and port.
func isProxy(value string) bool {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	return err == nil && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) &&
		u.Hostname() != "" && (strings.Count(u.Host, ":") < 2 || u.Host[0] == '[') &&
		strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}
