package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// A trouble is a night in which things go wrong, by the number of requests so far. Its clock moves
// by waits, and a little with each request.
type trouble struct {
	*night
	server *hubtest.Server
	clock  *hubtest.JumpClock
	rnd    *rand.Rand
	least  int64 // the disk that any of its models needs

	mu       sync.Mutex
	asked    int64     // requests so far
	setbacks []setback // to come, in order
	away     setback   // the outage, until over
	over     time.Time
	token    string    // the one that counts
	due      time.Time // when its file has it
	written  bool      // it has
	stop     context.CancelCauseFunc
	met      []string // what this run has met
}

// A setback happens at a request.
type setback struct {
	at    int64
	what  string
	host  string // of an outage: "" is any
	lasts time.Duration
	meet  hubtest.Action // of an outage
}

// outages are what answers instead of a Hub or its storage, by host.
var outages = []setback{
	{what: "login page", meet: hubtest.Status(200, hubtest.Header{"Content-Type": "text/html"}, "<html>")},
	{what: "page without a type", meet: hubtest.Status(403, hubtest.Header{"Content-Type": ""}, "<html>")},
	{what: "503", meet: hubtest.Status(503, nil, "")},
	{what: "503 that asks to wait", meet: hubtest.Status(503, hubtest.Header{"Retry-After": "20"}, "")},
	{what: "reset", meet: func(*hubtest.Exchange) { panic(http.ErrAbortHandler) }},
	{what: "empty", host: "hub.test", meet: hubtest.Status(200, nil, "")},
	{what: "500", host: "hub.test", meet: hubtest.Error(500, "", "Internal Error")},
	{what: "429", host: "hub.test", meet: hubtest.Status(429, hubtest.Header{"RateLimit": `"api";r=0;t=30`}, "")},
	{what: "storage refuses", host: "storage.test", meet: hubtest.Status(403, nil, "")},
	{what: "storage is gone", host: "storage.test", meet: func(*hubtest.Exchange) { panic(http.ErrAbortHandler) }},
}

// newTrouble returns a night of so many models in a few shapes, in which nothing goes wrong yet.
func newTrouble(t *testing.T, models int, rnd *rand.Rand) *trouble {
	t.Helper()
	n := &trouble{clock: hubtest.NewJumpClock(hubtest.Noon), rnd: rnd, token: "hf_0", written: true}
	n.server = hubtest.Start(t, inMemory, hubtest.WithClock(n.clock.Now), hubtest.WithMultipart(8<<10, 4<<10))
	var ids []string
	for i := range models {
		ids = append(ids, fmt.Sprintf("org/m%d", i))
		n.server.AddModel(ids[i], hubtest.NewLlama(uint64(i), hubtest.ModelOptions{
			Hidden: 16, Heads: 2, Vocab: 64 << rnd.IntN(3), Layers: 1 + rnd.IntN(3), ShardBytes: 4 << 10 << (2 * rnd.IntN(2)),
			Extra: hubtest.OwnPicture}))
	}
	list := filepath.Join(t.TempDir(), "list.yaml")
	world.Write(t, list, []byte("models: ["+strings.Join(ids, ", ")+"]"))
	n.night = newNight(t, n.server, list)
	n.hub.Clock, n.hub.Token, n.hub.TokenFile = n.clock, n.token, filepath.Join(t.TempDir(), "token")
	world.Write(t, n.hub.TokenFile, n.token)
	for _, id := range ids[:min(10, models)] {
		opt := n.hub
		f, err := pipeline.Plan(t.Context(), id, pipeline.PlanOptions{Options: pipeline.Options{Means: pipeline.Means{Hubs: &pipeline.Hubs{Options: &opt}}}})
		world.Must(t, err)
		n.least = max(n.least, f.Needs.DiskLeast)
	}
	n.server.ResetLog()
	n.server.Inject(hubtest.Fault{Path: "*", Times: hubtest.Always, Action: n.answer})
	return n
}

// foresee spreads what will happen over the requests of a night without trouble.
func (n *trouble) foresee(requests, kills, outs, tokens int) {
	add := func(times int, make func() setback) {
		for range times {
			e := make()
			e.at = 1 + n.rnd.Int64N(int64(requests))
			n.setbacks = append(n.setbacks, e)
		}
	}
	add(kills, func() setback { return setback{what: "kill"} })
	add(outs, func() setback {
		e := outages[n.rnd.IntN(len(outages))]
		e.lasts = time.Duration(5+n.rnd.IntN(8*60)) * time.Second
		return e
	})
	add(tokens, func() setback { return setback{what: "token", lasts: time.Duration(n.rnd.IntN(180)) * time.Second} })
	slices.SortFunc(n.setbacks, func(a, b setback) int { return int(a.at - b.at) })
}

// answer is what a request meets.
func (n *trouble) answer(x *hubtest.Exchange) {
	_ = n.clock.Sleep(context.Background(), 20*time.Millisecond)
	r := x.Request
	signed := strings.HasPrefix(r.URL.Path, "/api/complete_multipart") // by its link, as a storage's
	if action := n.meet(r.URL.Host, r.Header.Get("Authorization"), signed); action != nil {
		action(x)
		return
	}
	x.Next(x.ResponseWriter)
}

func (n *trouble) meet(host, authorization string, signed bool) hubtest.Action {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now()
	for n.asked++; len(n.setbacks) > 0 && n.setbacks[0].at <= n.asked; n.setbacks = n.setbacks[1:] {
		e := n.setbacks[0]
		n.met = append(n.met, e.what)
		switch e.what {
		case "kill":
			n.stop(errInterrupted)
		case "token":
			n.token, n.due, n.written = n.token+"0", now.Add(e.lasts), false
		default:
			n.away, n.over = e, now.Add(e.lasts)
		}
	}
	if !n.written && !now.Before(n.due) {
		n.written = true
		if err := os.WriteFile(n.hub.TokenFile, []byte(n.token), 0o600); err != nil {
			panic(err)
		}
	}
	switch {
	case now.Before(n.over) && strings.Contains(host, n.away.host):
		return n.away.meet
	case host == "hub.test" && !signed && authorization != "Bearer "+n.token:
		return hubtest.Error(http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
	}
	return nil
}

// runOnce runs the batch until it ends or is killed, here or on another machine, with much disk or
// hardly any. It returns what the run has met.
func (n *trouble) runOnce(t *testing.T) (b batchReport, diag string, met []string, err error) {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	_ = n.clock.Sleep(ctx, time.Duration(n.rnd.IntN(600))*time.Second) // until someone looks
	n.mu.Lock()
	n.stop, n.met = stop, nil
	if n.clock.Now().Before(n.over) {
		n.met = append(n.met, n.away.what)
	}
	if !n.written {
		n.met = append(n.met, "token")
	}
	n.mu.Unlock()
	if n.disk = 0; n.rnd.IntN(2) == 0 {
		n.disk = n.least
	}
	if n.rnd.IntN(3) == 0 {
		n.work = t.TempDir()
	}
	n.hub.Token = strings.TrimSpace(string(world.Read(t, n.hub.TokenFile)))
	b, diag, err = n.run(ctx, t)
	n.mu.Lock()
	defer n.mu.Unlock()
	return b, diag, n.met, err
}

// holds returns what main of a repo holds, by path and hash. The manifest says of each source file
// whether it was hashed as it came, or was rebuilt because no single run has read it whole.
func (n *trouble) holds(t *testing.T, repo string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, f := range n.server.Files(repo, "main") {
		files[name] = f.SHA256 + f.BlobID
	}
	if _, ok := files[names.Manifest]; ok {
		b, err := n.server.ReadFile(repo, "main", names.Manifest)
		world.Must(t, err)
		files[names.Manifest] = world.Sum(world.AsStreamed(b))
	}
	return files
}
