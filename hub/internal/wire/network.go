//go:build !js

package wire

import (
	"context"
	"net"
	"net/http"
	"time"
)

// HidesRedirects says whether what sends the requests follows redirects unseen.
const HidesRedirects = false

// newRoundTripper speaks HTTP/1.1 only: over HTTP/2 all ranges of a file would share one TCP
// connection, and one connection is what limits a CDN. Proxies come from the environment, custom
// CAs from SSL_CERT_FILE through Go itself.
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
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dial,
		Protocols:           protocols,
		TLSHandshakeTimeout: 20 * time.Second,
		MaxIdleConns:        4 * Transfers,
		MaxIdleConnsPerHost: 2 * Transfers,
		IdleConnTimeout:     90 * time.Second,
	}
}
