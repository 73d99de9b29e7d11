package main

import (
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// TestServers checks servers that speak the Hub's protocol in their own ways. Reading from them
// takes about as few requests as from the Hub, they accept what we publish if they accept anything,
// and their answers about missing repos, revisions, and rights are understood.
func TestServers(t *testing.T) {
	asked := map[string]int{}
	for name, ways := range hubtest.Servers {
		t.Run(name, func(t *testing.T) {
			s := startHub(t, "hf_secret", hubtest.WithWays(ways))
			s.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{ShardBytes: 200_000}))
			ends(t, exitError, "org/none: no such repo, or it is private\n", "plan", "org/none")
			ends(t, exitError, "org/model: no such revision\n", "plan", "org/model@nope")
			s.ResetLog()
			must(t, "plan", "org/model")
			asked[name] = len(s.Requests())
			out := filepath.Join(t.TempDir(), "out")
			must(t, "org/model", "-o", out)
			must(t, "verify", out)
			push := []string{"org/model", "--push", "--repo-id", "me/out"}
			if ways.ReadOnly {
				ends(t, exitError, "create repo me/out: this Hub may lack the route: 405 Method Not Allowed", push...)
				return
			}
			must(t, push...)
			must(t, "verify", "me/out")
			must(t, "decode", "me/out", "-o", filepath.Join(t.TempDir(), "back"))
			if ways.NoSlashes {
				ends(t, exitError, "this Hub may lack the route: 404 Not Found", append(push, "--revision", "feat/x")...)
			} else {
				must(t, append(push, "--revision", "feat/x")...)
			}
			s.Inject(hubtest.Fault{Name: "commit-quota", Times: hubtest.Always})
			ends(t, exitError, "storage quota reached: ", "org/model", "--push", "--repo-id", "me/full")
		})
	}
	for name, n := range asked {
		if most := asked["hub"] * 3 / 2; n > most {
			t.Errorf("a plan asks %s %d times, at most %d is expected", name, n, most)
		}
	}
}
