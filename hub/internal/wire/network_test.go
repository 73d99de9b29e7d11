package wire

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// TestProxiesThatRefuse checks that a proxy's answer to CONNECT is lasting or temporary, like a
// server's.
func TestProxiesThatRefuse(t *testing.T) {
	for status, want := range map[int]error{407: errProxy, 403: errProxy, 503: errNoConnection} {
		asked := 0
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(status)
		}))
		at, _ := url.Parse(proxy.URL)
		c, clock := testTransport(t, nil, func(o *Options) {
			o.Governor = NewGovernor()
			through := newRoundTripper(o.Governor)
			through.Proxy = http.ProxyURL(at)
			o.HTTPTransport = through
		})
		_, err := whoAmI(t.Context(), c)
		if !errors.Is(err, want) || (asked == 1) != errors.Is(want, errProxy) || clock.Waited() > firstContact || !strings.Contains(Hint(err), "HTTPS_PROXY") {
			t.Errorf("%d: asked %d times, waited %v: %v\nhint: %s", status, asked, clock.Waited(), err, Hint(err))
		}
		proxy.Close()
	}
}

// TestPlainHTTPToTLS checks that a TLS server is recognized within seconds, whether it closes the
// connection, sends an alert, or says so.
func TestPlainHTTPToTLS(t *testing.T) {
	for name, says := range map[string]string{"closes": "", "alert": "\x15\x03\x01\x00\x02\x02\x16",
		"page": "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 4096))
				_, _ = c.Write([]byte(says))
				c.Close()
			}
		}()
		clock := hubtest.NewJumpClock(time.Now())
		c, err := New(Options{Endpoint: "http://" + l.Addr().String(), Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Call(t.Context(), Get("x", "", c.Endpoint.String()+"/api/x"), nil)
		if err == nil || clock.Waited() > 2*firstContact || !strings.Contains(Hint(err), "HF_ENDPOINT") {
			t.Errorf("%s: waited %v: %v\nhint: %s", name, clock.Waited(), err, Hint(err))
		}
		l.Close()
	}
}
