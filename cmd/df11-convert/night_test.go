package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// inMemory makes a Hub without a network, for runs in virtual time.
var inMemory = hubtest.InMemory("https://hub.test", "https://storage.test")

// killModel makes a model with an output for each layer. A commit takes at most 50, so larger
// models commit some before the end.
func killModel(layers int) *hubtest.Model {
	return hubtest.NewLlama(5, hubtest.ModelOptions{
		Layers: layers, Hidden: 16, Heads: 2, Vocab: 64, ShardBytes: 60_000,
		Extra: hubtest.OwnPicture,
	})
}

// A night is a batch in this process, on a Hub in memory: in a bubble of package synctest, hours of
// waiting take no time.
type night struct {
	hub   hub.Options
	hubs  *pipeline.Hubs // instead of hub
	list  string
	work  string
	disk  int64
	force bool          // no survey
	slot  time.Duration // of each run; 0 is no limit
}

// newNight returns the night of a list on a Hub.
func newNight(t *testing.T, s *hubtest.Server, list string) *night {
	t.Helper()
	return &night{hub: hub.Options{Connection: hub.Connection{Endpoint: s.URL, Token: "hf_any",
		TokenSource: "HF_TOKEN", HTTPTransport: s}}, list: list, work: t.TempDir()}
}

// source says which Hub, or Hubs, a run asks.
func (n *night) source() sourceFlags {
	opt := n.hub
	return sourceFlags{hubs: n.hubs, instead: &opt}
}

// run runs batch --push, and returns its report, what it printed, and what ended it.
func (n *night) run(ctx context.Context, t *testing.T) (b batchReport, diag string, err error) {
	t.Helper()
	u, read := captured(t)
	u.json, u.command = true, "batch"
	f := &convertFlags{sourceFlags: n.source(), target: targetFlags{push: true, force: n.force},
		stopAfter: n.slot, gpu: gpuFlags{mode: "off"}, workDir: n.work, disk: sizeFlag(n.disk)}
	err = runBatch(ctx, u, f, n.list)
	b, _ = u.found.(batchReport)
	_, diag = read()
	return b, diag, err
}

// TestATokenForReadingEndsAList checks that a list ends with the first model that its token can't
// write, whatever the Hub's words, if the Hub says that the token is for reading. A missing right
// to one namespace says nothing about the others.
func TestATokenForReadingEndsAList(t *testing.T) {
	no := func(where string) hubtest.Fault {
		return hubtest.Fault{Method: "POST", Path: "/api/repos/create", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
			body, err := io.ReadAll(x.Request.Body)
			x.Request.Body = io.NopCloser(bytes.NewReader(body))
			if err == nil && strings.Contains(string(body), where) {
				hubtest.Error(403, "", "You don't have the rights to create a model under the namespace "+where)(x)
				return
			}
			x.Next(x.ResponseWriter)
		}}
	}
	for name, c := range map[string]struct {
		reads                 bool
		where                 string
		failed, made, skipped int
	}{
		"reading": {true, "tester", 1, 0, 3},
		"foreign": {false, "elsewhere", 1, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := fourModels(t, inMemory, hubtest.WithUser("hf_any", hubtest.User{Name: "tester", ReadOnly: c.reads, Orgs: []string{"elsewhere"}}))
				s.Inject(no(c.where))
				list := filepath.Join(t.TempDir(), "list.yaml")
				world.Write(t, list, "models: [{source: org/m0, repo-id: elsewhere/m0-DF11}, org/m1, org/m2, org/m3]")
				if c.reads {
					world.Write(t, list, "models: [org/m0, org/m1, org/m2, org/m3]")
				}
				start := time.Now()
				b, diag, err := newNight(t, s, list).run(t.Context(), t)
				o := b.Outcomes
				if err == nil || kindOf(err).code != exitAuth || o[outcomeFailed] != c.failed || o[outcomeConverted] != c.made || o[outcomeNotTried] != c.skipped {
					t.Errorf("%v, %v\n%s", err, o, diag)
				}
				if c.reads && (time.Since(start) > time.Minute || s.Count("POST", "/api/repos/create") != 1 || !strings.Contains(diag, "token for writing")) {
					t.Errorf("%v, %d tries\n%s", time.Since(start), s.Count("POST", "/api/repos/create"), diag)
				}
			})
		})
	}
}

// distant is a transport whose requests for sources take a quarter of a second. Those of the
// witness, for targets, take real time.
type distant struct{ http.RoundTripper }

func (d distant) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/org/") {
		time.Sleep(time.Second / 4)
	}
	return d.RoundTripper.RoundTrip(r)
}

// TestSlotsGetOn checks that runs with a limit of time come to the end of a list, although a look
// at all of its models takes longer than one of them may run: each of them converts something.
func TestSlotsGetOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const models = 12
		s := hubtest.Start(t, inMemory)
		var entries []string
		for i := range models {
			name := fmt.Sprintf("org/m%d", i)
			s.AddModel(name, killModel(1))
			entries = append(entries, name)
		}
		list := filepath.Join(t.TempDir(), "list.yaml")
		world.Write(t, list, "models: ["+strings.Join(entries, ", ")+"]")
		n := newNight(t, s, list)
		n.hub.HTTPTransport, n.slot = distant{s}, 8*time.Second
		for slots := 1; ; slots++ {
			b, diag, err := n.run(t.Context(), t)
			if o := b.Outcomes; err == nil && o[outcomeConverted]+o[string(pipeline.Current)] == models && slots > 1 {
				return
			}
			if err == nil || slots == models || b.Outcomes[outcomeConverted] == 0 || len(b.Models) != models {
				t.Fatalf("slot %d: %v, %v\n%s", slots, err, b.Outcomes, diag)
			}
		}
	})
}

// TestNightsOfAList: whatever happens during a batch of hundreds of models, and however often it's
// killed, the runs that follow end with the same repos as one without trouble: the same files, by
// path and hash. There are outages of the Hub, of its storage, and of the network, shorter and
// longer than a list waits; the token expires, and some time later its file has another one; runs
// are killed at any request, and go on there, on another machine, or with hardly any disk.
func TestNightsOfAList(t *testing.T) {
	models := 40
	if world.Deep() {
		models = 300
	}
	for _, seed := range world.Seeds(t, 1, 1) {
		t.Run(fmt.Sprintf("DF11_SEED=%d", seed), func(t *testing.T) {
			calm := newTrouble(t, models, rand.New(rand.NewPCG(seed, 1)))
			if b, diag, _, err := calm.runOnce(t); err != nil || b.Outcomes[outcomeConverted] != models {
				t.Fatalf("without trouble: %v, %v\n%s", err, b.Outcomes, diag)
			}
			n := newTrouble(t, models, rand.New(rand.NewPCG(seed, 1)))
			n.foresee(4*len(calm.server.Requests()), 8+models/20, 8+models/20, 3+models/40)
			for runs := 1; ; runs++ {
				b, diag, met, err := n.runOnce(t)
				t.Logf("run %d met %q: %v, %v", runs, met, b.Outcomes, err)
				if b.Outcomes[outcomeFailed] > 1 {
					t.Errorf("run %d charges models: %v\n%s", runs, b.Outcomes, diag)
				}
				if err == nil && len(b.Models) == models {
					break
				}
				if err == nil || len(met) == 0 || runs > 10*models {
					t.Fatalf("run %d met %q: %v, %v\n%s", runs, met, b.Outcomes, err, diag)
				}
			}
			for i := range models {
				repo := fmt.Sprintf("tester/m%d-DF11", i)
				if got, want := n.holds(t, repo), calm.holds(t, repo); !maps.Equal(got, want) || len(got) == 0 {
					t.Errorf("%s holds %v, want %v", repo, got, want)
				}
			}
		})
	}
}
