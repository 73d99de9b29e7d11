package wire

import (
	"context"
	"net/http"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// Short names for answers without a network.
type scripted = hubtest.Scripted

var script, says, breaks, reply = hubtest.Script, hubtest.Says, hubtest.Breaks, hubtest.Reply

// realTime is for tests in a bubble.
func realTime(o *Options) { o.Clock = nil }

// testTransport returns a Transport to https://hub.test with the token "hf_secret" and a jitter of
// one half.
func testTransport(t *testing.T, w http.RoundTripper, change ...func(*Options)) (*Transport, *hubtest.JumpClock) {
	t.Helper()
	clock := hubtest.NewJumpClock(hubtest.Noon)
	opt := Options{Endpoint: "https://hub.test", EndpointSource: "HF_ENDPOINT", Token: "hf_secret", TokenSource: "HF_TOKEN", HTTPTransport: w, Clock: clock}
	for _, f := range change {
		f(&opt)
	}
	c, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	c.Jitter = func() float64 { return 0.5 }
	return c, clock
}

// hintOf returns the next step after an error.
func hintOf(err error) string { return hint.Of(err).String() }

const okUser = `{"name":"me"}`

// whoAmI asks for the token's owner.
func whoAmI(ctx context.Context, c *Transport) (string, error) {
	var doc struct{ Name string }
	_, err := c.Call(ctx, Get("read the token's owner", "", "https://hub.test/api/whoami-v2"), &doc)
	return doc.Name, err
}
