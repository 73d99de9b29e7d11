package pipeline_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestCallsWithTheSameHubsAskAnew checks calls of a program that goes on for days with one Hubs: each
// sees what the repos hold now, also after one that found nothing to do, and one whose source wasn't
// there yet.
func TestCallsWithTheSameHubsAskAnew(t *testing.T) {
	server := hubtest.Start(t)
	means := pipeline.Means{Hubs: &pipeline.Hubs{Options: &hub.Options{
		Connection: hub.Connection{Endpoint: server.URL, Token: "hf_tester", TokenSource: "the test"}}}}
	opt := pipeline.Options{Push: true, Repo: "me/out", Means: means}
	convert := func() (*pipeline.Report, error) { return pipeline.Convert(t.Context(), "org/model", opt) }
	if _, err := convert(); pipeline.ErrorOf(err) == nil || pipeline.ErrorOf(err).Kind != pipeline.ErrNotFound {
		t.Fatal(err)
	}
	server.AddModel("org/model", hubtest.NewLlama(1, hubtest.ModelOptions{}))
	for i, upToDate := range []bool{false, true, true, false, true} {
		if i == 3 {
			server.Push("org/model", "main", map[string][]byte{"README.md": []byte("# Another\n")})
		}
		r, err := convert()
		world.Must(t, err)
		if r.Verified.UpToDate != upToDate {
			t.Errorf("call %d: up to date %v", i, r.Verified.UpToDate)
		}
	}
	server.Push("me/out", "main", map[string][]byte{"config.json": nil})
	p, err := pipeline.Status(t.Context(), "org/model", opt)
	if err != nil || p.State != pipeline.Unfinished {
		t.Errorf("%s, %v", p.State, err)
	}
}
