package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/pipeline"
)

// bothHubs sends requests to the Hub that they are for.
type bothHubs struct{ source, target *hubtest.Server }

func (b bothHubs) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Host, "target") {
		return b.target.RoundTrip(r)
	}
	return b.source.RoundTrip(r)
}

// TestAnOutageOfOneOfTwoHubs checks a list that reads from one Hub and publishes to another, while one of
// them is away from the second model on. For four minutes, that costs no model. For ever, the list ends
// after five minutes, waits and messages are about that Hub, and the hint names its variable.
func TestAnOutageOfOneOfTwoHubs(t *testing.T) {
	for _, away := range []string{"source", "target"} {
		for what, meet := range map[string]hubtest.Action{
			"503":   hubtest.Status(503, nil, ""),
			"cut":   func(*hubtest.Exchange) { panic(http.ErrAbortHandler) },
			"page":  hubtest.Status(200, hubtest.Header{"Content-Type": "text/html"}, "<html>"),
			"token": hubtest.Error(401, "", "Invalid credentials in Authorization header"),
		} {
			for _, lasts := range []time.Duration{4 * time.Minute, 24 * time.Hour} {
				t.Run(fmt.Sprint(away, what, lasts), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { oneAway(t, away, what, meet, lasts) })
				})
			}
		}
	}
}

func oneAway(t *testing.T, away, what string, meet hubtest.Action, lasts time.Duration) {
	t.Helper()
	source, list := fourModels(t, hubtest.InMemory("https://source.test", "https://store.source.test"))
	target := hubtest.Start(t, hubtest.InMemory("https://target.test", "https://store.target.test"))
	both := bothHubs{source, target}
	var began time.Time
	fault := hubtest.Fault{Path: "*", Host: hubtest.HostHub, Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		if began.IsZero() && target.Head("tester/m0-DF11", "main") != "" && strings.Contains(x.Request.URL.Path, "m1") {
			began = time.Now()
		}
		if !began.IsZero() && time.Since(began) < lasts {
			meet(x)
			return
		}
		x.Next(x.ResponseWriter)
	}}
	map[string]*hubtest.Server{"source": source, "target": target}[away].Inject(fault)
	options := func(url, variable string) *hub.Options {
		return &hub.Options{Connection: hub.Connection{Endpoint: url, EndpointSource: variable, Token: "hf_any",
			TokenSource: "HF_TOKEN", HTTPTransport: both}}
	}
	n := &night{hubs: &pipeline.Hubs{Options: options("https://source.test", "HF_ENDPOINT"),
		Target: options("https://target.test", "DF11_PUSH_ENDPOINT"), Patience: patience}, list: list, work: t.TempDir(), force: true}
	b, diag, err := n.run(t.Context(), t)
	if lasts < 5*time.Minute {
		if err != nil || b.Outcomes[outcomeConverted] != 4 {
			t.Errorf("%v, %v\n%s", err, b.Outcomes, diag)
		}
		return
	}
	if took := time.Since(began); err == nil || b.Outcomes[outcomeConverted] != 1 || b.Outcomes[outcomeNotTried] != 2 ||
		took < 5*time.Minute || took > 6*time.Minute {
		t.Errorf("%v after %v, %v\n%s", err, took, b.Outcomes, diag)
	}
	hubs := map[string][2]string{"source": {"https://source.test", "HF_ENDPOINT"}, "target": {"https://target.test", "DF11_PUSH_ENDPOINT"}}
	at, other := hubs[away], hubs["source"]
	if away == "source" {
		other = hubs["target"]
	}
	for line := range strings.Lines(diag) {
		complains := strings.Contains(line, "waiting ") || strings.HasPrefix(line, "df11-convert:") || strings.HasPrefix(line, "hint:")
		if complains && (strings.Contains(line, strings.TrimPrefix(other[0], "https://")) || strings.Contains(line, other[1])) {
			t.Errorf("blames %s: %s", other, line)
		}
	}
	want := hint.AgainAt.With("endpoint", at[0], "variable", at[1]).String()
	switch what {
	case "page":
		want = hint.WebPageAt.With("endpoint", at[0], "variable", at[1]).String()
	case "token":
		want = at[0] + "/settings/tokens"
	}
	if !strings.Contains(diag, want) {
		t.Errorf("no %q in %s", want, diag)
	}
}
