package hub

import (
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"testing"
	"unicode"
)

// TestHostileWordsNeverReachATerminal checks that an error and a wait's reason are one line each,
// of limited length and without control characters, wherever in an answer the words come from.
func TestHostileWordsNeverReachATerminal(t *testing.T) {
	words := "a\u009b31m" + strings.Repeat("x", 5000)
	for name, step := range map[string]func(*http.Request) (*http.Response, error){
		"body":         says(503, "{\"error\":\"a\\u001b[31m\\nb"+words+"\"}"),
		"X-Error-Code": says(503, "", "X-Error-Code: "+words),
		"message":      says(429, "", "X-Error-Message: "+words),
		"request id":   says(503, "", "X-Request-Id: "+words),
		"XML":          says(403, "<Error><Code>"+words+"</Code><Message>"+words+"</Message></Error>"),
		"redirect":     says(302, "", "Location: ftp://hub.test/"+words),
		"foreign host": says(302, "", "Location: https://"+words+".test/"),
		"network":      breaks(&net.DNSError{Err: "no such host", Name: words}),
		"certificate":  breaks(x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{words}}, Host: "hub.test"}),
		"commit":       says(200, `{"sha":"`+words+`"}`),
	} {
		var said []string
		c, _ := testClient(t, script(step), func(o *Options) { o.OnWait = func(w Wait) { said = append(said, w.Reason) } })
		for range 2 { // the second may wait because of the first
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
