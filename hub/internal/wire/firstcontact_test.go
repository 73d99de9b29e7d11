package wire

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAMissingNetworkIsNeverWaitedForAtTheStart: with no connection at all, the
// first request of a run says so within seconds, and names host and cause.
func TestAMissingNetworkIsNeverWaitedForAtTheStart(t *testing.T) {
	for name, cause := range map[string]error{
		"look-up": &net.DNSError{Err: "no such host", Name: "hub.test", IsNotFound: true},
		"refused": &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED},
		"proxy":   &net.OpError{Op: "proxyconnect", Net: "tcp", Err: syscall.ECONNREFUSED},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := script(breaks(cause))
				c, _ := testTransport(t, w, realTime)
				start := time.Now()
				_, err := whoAmI(t.Context(), c)
				if d := time.Since(start); !errors.Is(err, cause) || d > firstContact || w.Count() < 3 {
					t.Errorf("%d requests in %v: %v", w.Count(), d, err)
				}
				brief := "no connection to hub.test: " + cause.Error()
				if e, ok := errors.AsType[*Error](err); !ok || e.Brief() != brief || !strings.Contains(err.Error(), brief) || !strings.Contains(Hint(err), "HF_ENDPOINT, without which") {
					t.Errorf("%v; %s", err, Hint(err))
				}
			})
		})
	}
}

// TestASilentNetworkIsNeverWaitedForAtTheStart: a firewall that drops packets
// costs one short dial, not thirty seconds for each try.
func TestASilentNetworkIsNeverWaitedForAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := script(func(r *http.Request) (*http.Response, error) {
			time.Sleep(firstContact) // what the dialer allows, see newRoundTripper
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("i/o timeout")}
		})
		c, _ := testTransport(t, w, realTime)
		if _, err := whoAmI(t.Context(), c); w.Count() != 1 || !errors.Is(err, errNoConnection) {
			t.Errorf("%d requests, %v", w.Count(), err)
		}
	})
}
