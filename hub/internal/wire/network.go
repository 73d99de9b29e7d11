//go:build !js

package wire

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// HidesRedirects reports whether the sender follows redirects unseen.
const HidesRedirects = false

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
		Proxy: http.ProxyFromEnvironment,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request,
			resp *http.Response) error {
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			return fmt.Errorf("%w: the proxy says %s", errNoAnswer, resp.Status)
		},
		DialContext:         dial,
		Protocols:           protocols,
		TLSHandshakeTimeout: 20 * time.Second,
		MaxIdleConns:        4 * Transfers,
		MaxIdleConnsPerHost: 2 * Transfers,
		IdleConnTimeout:     90 * time.Second,
	}
}
