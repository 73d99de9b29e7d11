package pipeline_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestAFailedRequestIsNoAnswer checks that calls which try several readings of a model take a Hub that
// doesn't answer for none of them. It lets each request in turn fail, and all after it: the call
// ends with that error, or as it does when all are answered.
func TestAFailedRequestIsNoAnswer(t *testing.T) {
	server := hubtest.Start(t)
	server.AddRepo("org/pipe", wanPipeline())
	means := func() pipeline.Means {
		return pipeline.Means{Hubs: &pipeline.Hubs{Options: &hub.Options{
			Connection: hub.Connection{Endpoint: server.URL, Token: "hf_demo", TokenSource: "this test"}}}}
	}
	out := filepath.Join(t.TempDir(), "out")
	_, err := pipeline.Convert(t.Context(), "org/pipe", pipeline.Options{Folder: out, Means: means(), Recipe: pipeline.Recipe{Component: "transformer_2"}})
	world.Must(t, err)
	whole := world.ReadAll(t, out)
	for _, name := range []string{names.Manifest, names.Card} { // so that nothing says which part it is
		world.Must(t, os.Remove(filepath.Join(out, name)))
	}
	server.AddRepo("org/pipe-DF11", whole)
	for what, call := range map[string]func() error{
		"verify": func() error {
			r, err := pipeline.Verify(t.Context(), out, pipeline.VerifyOptions{Means: means(), Against: "org/pipe", WorkDir: t.TempDir()})
			if err == nil && !r.OK {
				return errors.Join(r.Damage, r.Difference)
			}
			return err
		},
		"ComfyUI's file of a pipeline": func() error {
			_, err := pipeline.Plan(t.Context(), "org/pipe", pipeline.PlanOptions{Options: pipeline.Options{Means: means(), Recipe: pipeline.Recipe{Layout: "single"}}})
			return err
		},
		"a DF11 source": func() error {
			_, err := pipeline.Plan(t.Context(), "org/pipe-DF11", pipeline.PlanOptions{Options: pipeline.Options{Means: means(),
				Recipe: pipeline.Recipe{Layout: "diffusers-single"}}})
			return err
		},
	} {
		calm, failed := fmt.Sprint(call()), 0
		for k := 1; ; k++ {
			server.Inject(hubtest.Fault{Name: "fails", Nth: k, Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
				http.Error(x, "no", http.StatusBadRequest)
			}})
			err := call()
			acted := server.FaultsActed("fails")
			server.ClearFaults()
			if acted == 0 {
				break
			}
			if request := (*hub.Error)(nil); !errors.As(err, &request) && fmt.Sprint(err) != calm {
				t.Errorf("%s, request %d failed: %v\nwithout: %s", what, k, err, calm)
			} else if request != nil {
				failed++
			}
		}
		if t.Logf("%s: %d failures; without: %s", what, failed, calm); failed == 0 {
			t.Errorf("%s: no request failed", what)
		}
	}
}
