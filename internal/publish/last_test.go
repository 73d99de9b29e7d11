package publish_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestMainIsReadAgain checks that the last commit counts only if main holds what was sent when it's
// read again. What a person adds next to the weights doesn't matter.
func TestMainIsReadAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile map[string][]byte // that someone else commits right after
		lost      bool
	}{
		"nothing":        {},
		"a note":         {map[string][]byte{"notes.txt": []byte("mine")}, false},
		"a file of ours": {map[string][]byte{"config.json": []byte("theirs")}, true},
		"a deletion":     {map[string][]byte{"config.json": nil}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := hubtest.Start(t)
			c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: s.URL, Token: "hf_secret", Clock: hubtest.NewJumpClock(time.Now())}})
			world.Must(t, err)
			push := &publish.Push{Hub: c, Repo: "me/target", Private: new(false)}
			p := &plan.Plan{Config: "config.json", Layout: catalog.Transformers}
			run := publish.NewConversion(p, publish.OriginOf(&model.Model{Origin: &model.Origin{Repo: "org/a"}}), "part", false)
			f, err := publish.OpenFolder(t.Context(), filepath.Join(t.TempDir(), "work"), false, run, 0o666)
			world.Must(t, err)
			defer f.Close(true)
			to, err := push.Open(t.Context(), run, &model.Model{Local: true}, f)
			world.Must(t, err)
			if tt.meanwhile != nil {
				s.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/commit/main", Action: func(x *hubtest.Exchange) {
					x.Next(x.ResponseWriter)
					s.Push("me/target", "main", tt.meanwhile)
				}})
			}
			err = to.Finish(t.Context(), &publish.Result{Summary: "Add a as DF11", Files: []publish.SideFile{
				publish.NewSideFile("README.md", metadata.KindCard, []byte("card")), publish.NewSideFile("config.json", metadata.KindConfig, []byte("{}"))}})
			if lost := (*publish.LostError)(nil); errors.As(err, &lost) != tt.lost || err != nil && lost == nil {
				t.Errorf("got %v, want it lost: %v", err, tt.lost)
			}
		})
	}
}
