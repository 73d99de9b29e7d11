package hub

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// outage lets one host of a hub be gone until a moment, or some of what it is asked for.
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

// answeredOnce is the governor of a program that has reached its hub before.
func answeredOnce(t *testing.T) *Governor {
	governor := NewGovernor()
	c, _ := testClient(t, script(says(200, okUser)), func(o *Options) { o.Governor = governor })
	if _, err := c.WhoAmI(t.Context()); err != nil {
		t.Fatal(err)
	}
	return governor
}

// How long a host that is gone is waited for, and how much longer the last wait may last.
const (
	patienceForOutages = 5 * time.Minute
	longestWait        = 2 * time.Minute
)

// TestAnOutageOfMinutesNeverEndsARun: whichever host or route is gone, whatever shows it, and
// whatever the client is at, four minutes are waited for. What stays away ends the run, after no
// more than some minutes.
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
		"500":     says(500, ""), "502": says(502, "<html>"), "503": says(503, ""), "504": says(504, ""),
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
