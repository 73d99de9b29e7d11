package hub

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"
)

// TestHostileWordsNeverReachATerminal: whatever place of an answer they come from, an error and the reason of a wait are one
// line each, of bounded length, without control characters.
func TestHostileWordsNeverReachATerminal(t *testing.T) {
	words := "a\u009b31m" + strings.Repeat("x", 5000)
	for name, step := range map[string]func(*http.Request) (*http.Response, error){
		"body":          says(503, "{\"error\":\"a\\u001b[31m\\nb"+words+"\"}"),
		"X-Error-Code":  says(503, "", "X-Error-Code: "+words),
		"message":       says(429, "", "X-Error-Message: "+words),
		"request id":    says(503, "", "X-Request-Id: "+words),
		"XML":           says(403, "<Error><Code>"+words+"</Code><Message>"+words+"</Message></Error>"),
		"rate bucket":   says(429, "", `RateLimit: "`+words+`";r=0;t=1`),
		"bucket at 200": says(200, "[]", `RateLimit: "`+words+`";r=0;t=1`),
		"redirect":      says(302, "", "Location: ftp://hub.test/"+words),
		"foreign host":  says(302, "", "Location: https://"+words+".test/"),
		"network":       breaks(&net.DNSError{Err: "no such host", Name: words}),
		"certificate":   breaks(x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{words}}, Host: "hub.test"}),
		"commit":        says(200, `{"sha":"`+words+`"}`),
	} {
		var said []string
		c, _ := testClient(t, script(step), func(o *Options) { o.OnWait = func(w Wait) { said = append(said, w.Reason) } })
		for range 2 { // the second may wait for what the first was told
			if _, err := c.Head(t.Context(), "a/b", "main"); err == nil {
				t.Fatalf("%s: no error", name)
			} else {
				said = append(said, err.Error())
			}
		}
		for _, s := range said {
			if strings.ContainsFunc(s, unicode.IsControl) || len(s) > 1500 {
				t.Errorf("%s: %d bytes: %.80q", name, len(s), s)
			}
		}
	}
}

// TestWarningsAreNeverWithoutEnd: each topic of X-HF-Warning is logged once, and no hub makes a client remember or print
// more than a few, each cut to a line.
func TestWarningsAreNeverWithoutEnd(t *testing.T) {
	var n atomic.Int64
	w := &wire{answer: func(r *http.Request) (*http.Response, error) {
		fresh := fmt.Sprintf("X-HF-Warning: topic %d %s; text", n.Add(1), strings.Repeat("x", 5000))
		return reply(r, 200, "{}", fresh, "X-HF-Warning: deprecated; use the other one", "X-HF-Warning: without a topic"), nil
	}}
	var log bytes.Buffer
	c, _ := testClient(t, w, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for range 3 * maxTopics {
		if _, err := c.t.call(t.Context(), get("x", "", "https://hub.test/api/x"), nil); err != nil {
			t.Fatal(err)
		}
	}
	for part, times := range map[string]int{"hub warning": maxTopics, "topic=deprecated": 1, "without a topic": 1} {
		if got := strings.Count(log.String(), part); got != times {
			t.Errorf("%q is logged %d times, want %d", part, got, times)
		}
	}
	if log.Len() > maxTopics*1000 || len(c.t.warned.known) != maxTopics {
		t.Errorf("%d bytes logged, %d topics remembered", log.Len(), len(c.t.warned.known))
	}
}
