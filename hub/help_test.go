package hub

import (
	"context"
	"net/http"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

const okUser = `{"name":"me","type":"user","orgs":[{"name":"team"}],"auth":{"accessToken":{"displayName":"ci","role":"write"}}}`

// must ends the test if err isn't nil.
var must = shared.Must

// Short names for answers without a network.
type scripted = hubtest.Scripted

var script, says, breaks, reply = hubtest.Script, hubtest.Says, hubtest.Breaks, hubtest.Reply

// testClient returns a client of https://hub.test with the token "hf_secret".
func testClient(t *testing.T, w http.RoundTripper, change ...func(*Options)) (*Client, *hubtest.JumpClock) {
	t.Helper()
	clock := hubtest.NewJumpClock(hubtest.Noon)
	opt := Options{Connection: Connection{Endpoint: "https://hub.test", Token: "hf_secret", TokenSource: "HF_TOKEN", HTTPTransport: w, Clock: clock}}
	for _, f := range change {
		f(&opt)
	}
	c, err := New(opt)
	must(t, err)
	c.t.jitter = func() float64 { return 0.5 }
	return c, clock
}

// testTransport returns a transport to https://hub.test with the token "hf_secret" and a jitter of
// one half.
func testTransport(t *testing.T, w http.RoundTripper, change ...func(*Options)) (*transport, *hubtest.JumpClock) {
	t.Helper()
	c, clock := testClient(t, w, append([]func(*Options){func(o *Options) { o.EndpointSource = "HF_ENDPOINT" }}, change...)...)
	return c.t, clock
}

// realTime makes the client use the bubble's clock.
func realTime(o *Options) { o.Clock = nil }

// hintOf returns the next step after an error.
func hintOf(err error) string { return hint.Of(err).String() }

// whoAmI asks for the token's owner.
func whoAmI(ctx context.Context, c *transport) (string, error) {
	var doc struct{ Name string }
	_, err := c.call(ctx, getRequest("read the token's owner", "", "https://hub.test/api/whoami-v2"), &doc)
	return doc.Name, err
}
