package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestARepoIsNotTheHub checks random lists on a Hub that refuses some of their repos, sources or
// targets, as hubs do: every model whose repos answer is converted, with and without a survey, the
// others fail, and the list has an outcome for each. Repos are listed once or several times. If the
// Hub refuses all repos, the list ends.
func TestARepoIsNotTheHub(t *testing.T) {
	for _, seed := range world.Seeds(t, 12, 100) {
		t.Run(fmt.Sprintf("DF11_SEED=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				s, _ := fourModels(t, inMemory)
				refuse := []hubtest.Action{
					hubtest.Error(500, "", "cannot read this repo: ledger damaged"),
					hubtest.Status(504, nil, ""),
				}[rnd.IntN(2)]
				bad, side := map[string]bool{}, []string{"source", "target"}[rnd.IntN(2)]
				var entries []string
				want, sources := map[string]int{}, map[string]string{}
				for i := range 4 {
					source := fmt.Sprintf("org/m%d", i)
					isBad := rnd.IntN(2) == 0
					for j := range 1 + rnd.IntN(2) {
						target := fmt.Sprintf("tester/x%d-%d", i, j)
						entries = append(entries, fmt.Sprintf("{source: %s, repo-id: %s}", source, target))
						sources[target] = source
						if isBad && side == "source" {
							bad[source] = true
						} else if isBad {
							bad[target] = true
						}
					}
				}
				for target, source := range sources {
					if bad[source] || bad[target] {
						want[outcomeFailed]++
					} else {
						want[outcomeConverted]++
					}
				}
				rnd.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
				list := filepath.Join(t.TempDir(), "list.yaml")
				world.Write(t, list, "models: ["+strings.Join(entries, ", ")+"]")
				s.Inject(hubtest.Fault{Host: hubtest.HostHub, Path: "*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
					for repo := range bad {
						if strings.Contains(x.Request.URL.Path, "/"+repo+"/") || strings.HasSuffix(x.Request.URL.Path, "/"+repo) {
							refuse(x)
							return
						}
					}
					x.Next(x.ResponseWriter)
				}})
				n := newNight(t, s, list)
				n.force = rnd.IntN(2) == 0
				found, diag, err := n.run(t.Context(), t)
				if len(found.Models) != len(entries) || (err == nil) != (len(bad) == 0) {
					t.Errorf("%v, %d of %d outcomes\n%s", err, len(found.Models), len(entries), diag)
				}
				if want[outcomeConverted] > 0 && !maps.Equal(found.Outcomes, want) {
					t.Errorf("%v without %v (force %v): %v, want %v\n%s", entries, slices.Sorted(maps.Keys(bad)), n.force, found.Outcomes, want, diag)
				}
			})
		})
	}
}

// TestAListOfRefusals checks that a list ends when the Hub refuses every repo with words, before the
// first model and after it, that it asks about the others then, and that each model has an outcome.
func TestAListOfRefusals(t *testing.T) {
	for _, from := range []string{"/org/m0", "/org/m1", "/org/m3"} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, list := fourModels(t, inMemory)
				gone := false
				s.Inject(hubtest.Fault{Host: hubtest.HostHub, Path: "*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
					if gone = gone || strings.Contains(x.Request.URL.Path, from); gone && strings.Contains(x.Request.URL.Path, "/m") {
						hubtest.Error(http.StatusInternalServerError, "", "ledger damaged")(x)
						return
					}
					x.Next(x.ResponseWriter)
				}})
				start := time.Now()
				found, diag, err := newNight(t, s, list).run(t.Context(), t)
				o := found.Outcomes
				if took := time.Since(start); err == nil || len(found.Models) != 4 || o[outcomeFailed] != 1 || o[outcomeNotTried] != 3 || took > 7*time.Minute {
					t.Errorf("after %v: %v, %v\n%s", took, err, o, diag)
				}
			})
		})
	}
}
