package wire

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestProxiesThatRefuse checks that a proxy that refuses CONNECT is named within seconds.
func TestProxiesThatRefuse(t *testing.T) {
	for _, status := range []int{407, 503} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
		if !errors.Is(err, errNoConnection) || clock.Waited() > firstContact || !strings.Contains(err.Error(), fmt.Sprint("the proxy says ", status)) || !strings.Contains(Hint(err), "HTTPS_PROXY") {
			t.Errorf("waited %v: %v\nhint: %s", clock.Waited(), err, Hint(err))
		}
		proxy.Close()
	}
}
