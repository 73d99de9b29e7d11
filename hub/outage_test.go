package hub

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/hint"
)

// outage makes one host of a hub unreachable for a while, or some of its routes.
type outage struct {
	http.RoundTripper
	where string // in the URL
	until time.Time
	gone  func(*http.Request) (*http.Response, error)
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.String(), o.where) || !time.Now().Before(o.until) {
		return o.RoundTripper.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return o.gone(r)
}

// answeredOnce is the governor of a program that reached its hub before.
func answeredOnce(t *testing.T) *Governor {
	governor := NewGovernor()
	c, _ := testClient(t, script(says(200, okUser)), func(o *Options) { o.Governor = governor })
	if _, err := c.WhoAmI(t.Context()); err != nil {
		t.Fatal(err)
	}
	return governor
}

// How long to wait for an unreachable host, and how much longer the last wait may be.
const (
	patienceForOutages = 5 * time.Minute
	longestWait        = 2 * time.Minute
)

// TestAnOutageOfMinutesNeverEndsARun checks that the client waits four minutes for any host or
// route, whatever the failure and the task. If it stays away, the run ends within a few more
// minutes.
func TestAnOutageOfMinutesNeverEndsARun(t *testing.T) {
	download := func(t *testing.T, change func(*Options)) error {
		h := newFileHub(t, 20_000)
		c, _ := testClient(t, h, smallRanges, change)
		return streamAll(t, c, h)
	}
	upload := func(t *testing.T, change func(*Options)) error {
		c, _ := testClient(t, linkHub(t, 24*time.Hour), change)
		b, _ := testBlob(4500)
		_, err := c.Upload(t.Context(), "a/b", "main", b)
		return err
	}
	faults := map[string]func(*http.Request) (*http.Response, error){
		"refused": breaks(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}),
		"look-up": breaks(&net.DNSError{Err: "no such host", Name: "gone.test", IsNotFound: true}),
		"reset":   breaks(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}),
		"closed":  breaks(fmt.Errorf("read from server: %w", io.EOF)),
		"403":     says(403, ""), "500": says(500, ""), "502": says(502, "<html>"), "503": says(503, ""), "504": says(504, ""),
	}
	for _, tt := range []struct {
		work string
		run  func(t *testing.T, change func(*Options)) error
		gone string
	}{
		{"download", download, "hub.test"}, {"download", download, "cdn.test"}, {"upload", upload, "hub.test"}, {"upload", upload, "s3.test"},
		{"upload", upload, "/preupload/"}, {"upload", upload, "/objects/batch"}, {"upload", upload, "partNumber=2"},
		{"upload", upload, "/complete"}, {"upload", upload, "/verify"},
	} {
		for name, gone := range faults {
			if name == "403" && tt.gone != "cdn.test" && tt.gone != "s3.test" {
				continue // the Hub means it
			}
			for _, lasts := range []time.Duration{4 * time.Minute, time.Hour} {
				t.Run(fmt.Sprintf("%s %s %s %v", tt.work, tt.gone, name, lasts), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						start := time.Now()
						err := tt.run(t, func(o *Options) {
							o.Clock, o.Governor = nil, answeredOnce(t)
							o.HTTPTransport = &outage{o.HTTPTransport, tt.gone, start.Add(lasts), gone}
						})
						took := time.Since(start)
						if lasts < patienceForOutages && (err != nil || took < lasts) {
							t.Errorf("after %v: %v", took, err)
						}
						if lasts > patienceForOutages && (err == nil || took < patienceForOutages || took > patienceForOutages+longestWait) {
							t.Errorf("ended after %v: %v", took, err)
						}
						if errors.Is(err, io.EOF) {
							t.Errorf("it would pass for the end of a file: %v", err)
						}
					})
				})
			}
		}
	}
}

// TestPeopleDoNotWaitLong checks that no call waits longer than its patience, whatever the hub
// answers.
func TestPeopleDoNotWaitLong(t *testing.T) {
	const patience = 15 * time.Second
	for _, gone := range []func(*http.Request) (*http.Response, error){
		says(429, ""), says(429, "", "Retry-After: 3600"), says(503, ""), says(503, "", "Retry-After: 5"), breaks(io.ErrUnexpectedEOF),
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := testClient(t, script(gone), func(o *Options) { o.Clock, o.Patience = nil, patience })
			start := time.Now()
			if _, err := c.Info(t.Context(), "a/b", "main"); err == nil || time.Since(start) > patience {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		})
	}
}

// TestAPageFromTheStorage checks that a web page in place of a file is blamed on the host that sent
// it, not on the variable that names the Hub, which answers.
func TestAPageFromTheStorage(t *testing.T) {
	for served, want := range map[bool]hint.Hint{
		false: hint.Firewall.With("host", "cdn.test"),
		true:  hint.WebPage.With("endpoint", "cdn.test"),
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newFileHub(t, 20_000)
			page := &outage{where: "cdn.test", gone: says(403, "<html>", "Content-Type: text/html")}
			c, _ := testClient(t, h, smallRanges, func(o *Options) {
				o.Clock, o.EndpointSource = nil, "HF_ENDPOINT"
				page.RoundTripper, o.HTTPTransport = o.HTTPTransport, page
			})
			if served && streamAll(t, c, h) != nil {
				t.Fatal("the storage doesn't serve")
			}
			page.until = time.Now().Add(time.Hour)
			if err := streamAll(t, c, h); err == nil || Hint(err) != want.String() {
				t.Errorf("served %v: %v\nhint: %s", served, err, Hint(err))
			}
		})
	}
}

// TestASilentStorageEndsSoon checks a storage that never sends a byte: whether it accepts
// connections or a firewall drops every packet, people hear of it within seconds, and the first
// read ends after about two minutes. Later ones aren't repeated. If the storage has ever answered,
// the run waits as long as in any outage.
func TestASilentStorageEndsSoon(t *testing.T) {
	const patienceForSilence = 90 * time.Second
	silent := func(limit time.Duration, op string) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-time.After(limit):
				return nil, &net.OpError{Op: op, Net: "tcp", Err: os.ErrDeadlineExceeded}
			}
		}
	}
	for name, gone := range map[string]func(*http.Request) (*http.Response, error){
		"accepts":   silent(time.Hour, ""), // so the client's own watch ends it
		"drops":     silent(30*time.Second, "dial"),
		"handshake": silent(20*time.Second, "remote error"),
	} {
		for _, c := range []struct {
			lasts       time.Duration
			spoke       bool
			least, most time.Duration // until the end; none means that all is read
		}{
			{time.Hour, false, patienceForSilence, 150 * time.Second},
			{80 * time.Second, false, 0, 0},
			{time.Hour, true, patienceForOutages, patienceForOutages + longestWait},
			{4 * time.Minute, true, 0, 0},
		} {
			synctest.Test(t, func(t *testing.T) {
				// as many ranges as connections, so that the first one never waits for another's
				h := newFileHub(t, 4000)
				var heard atomic.Pointer[time.Time] // by several downloads
				var start time.Time
				off := &outage{where: "cdn.test", gone: gone}
				client, _ := testClient(t, h, smallRanges, func(o *Options) {
					o.Clock, o.Governor = nil, answeredOnce(t)
					off.RoundTripper, o.HTTPTransport = o.HTTPTransport, off
					o.OnWait = func(Wait) {
						heard.CompareAndSwap(nil, new(time.Now()))
					}
				})
				if c.spoke {
					must(t, streamAll(t, client, h))
				}
				start = time.Now()
				off.until = start.Add(c.lasts)
				err := streamAll(t, client, h)
				took := time.Since(start)
				if again := time.Now(); err != nil && !c.spoke && (streamAll(t, client, h) == nil || time.Since(again) > 35*time.Second) {
					t.Errorf("%s: another read takes %v", name, time.Since(again))
				}
				if (err == nil) != (c.most == 0) || err != nil && (took < c.least || took > c.most) {
					t.Errorf("%s for %v, spoken %v: after %v: %v", name, c.lasts, c.spoke, took, err)
				}
				if err != nil && !c.spoke && Hint(err) != hint.Firewall.With("host", "cdn.test").String() {
					t.Errorf("%s: hint: %s", name, Hint(err))
				}
				if at := heard.Load(); at == nil || at.Sub(start) > 10*time.Second && !c.spoke {
					t.Errorf("%s: people hear of it at %v, not soon after %v", name, at, start)
				}
			})
		}
	}
}

// TestASlowLineIsNeverCut reads over a line that loses every other answer, brings the first byte of
// the rest after 25 seconds, and is slow from then on. That takes longer than any patience, but it
// moves.
func TestASlowLineIsNeverCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFileHub(t, 100_000)
		h.fault = func(n int, r *http.Request, good *http.Response) (*http.Response, error) {
			if n%2 == 1 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			time.Sleep(25 * time.Second)
			data, err := io.ReadAll(good.Body)
			good.Body = &slowBody{r.Context(), 20 * time.Millisecond, data}
			return good, err
		}
		c, _ := testClient(t, h, smallRanges, func(o *Options) { o.Clock, o.Governor = nil, answeredOnce(t) })
		start := time.Now()
		if err := streamAll(t, c, h); err != nil || time.Since(start) < 2*patienceForOutages {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// TestABlockedStorageIsWaitedForOnce checks a firewall that lets the Hub through and not its
// storage: the first read waits for minutes, the next ones don't, and the hint names the host.
func TestABlockedStorageIsWaitedForOnce(t *testing.T) {
	for name, gone := range map[string]func(*http.Request) (*http.Response, error){
		"refused": breaks(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}),
		"reset":   breaks(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}),
		"403":     says(403, ""),
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			h := newFileHub(t, 20_000)
			c, _ := testClient(t, h, smallRanges, func(o *Options) {
				o.Clock, o.Governor = nil, answeredOnce(t)
				o.HTTPTransport = &outage{o.HTTPTransport, "cdn.test", start.Add(time.Hour), gone}
				o.OnWait = func(w Wait) {
					if strings.Contains(w.Reason, "expired") {
						t.Errorf("%s: a new link is called expired: %+v", name, w)
					}
				}
			})
			for range 3 {
				if err := streamAll(t, c, h); err == nil || Hint(err) != hint.Firewall.With("host", "cdn.test").String() || strings.Contains(err.Error(), "expired") {
					t.Errorf("%s: %v\nhint: %s", name, err, Hint(err))
				}
			}
			if took := time.Since(start); took < patienceForOutages || took > patienceForOutages+longestWait {
				t.Errorf("%s: three reads took %v", name, took)
			}
		})
	}
}
