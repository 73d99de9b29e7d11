package publish

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestWhoMaySeeASource checks that however a source is named, its Hub is asked who may see it.
// Unless everyone may, or if no answer comes, the target is private, or refused if it's open
// already. Flags win over that.
func TestWhoMaySeeASource(t *testing.T) {
	const token, repo, open = "hf_secret", "org/m", "org/open"
	type options = []hubtest.RepoOption
	says := map[string]options{
		"public": {}, "private": {hubtest.Private()}, "gated": {hubtest.Gated("auto")},
		"gated manually": {hubtest.Gated("manual")}, "not found": nil, "fails": {},
	}
	local := func(l model.Lineage) model.Model { return model.Model{ID: "m", Local: true, Lineage: l} }
	ways := map[string]struct {
		m      model.Model
		from   string // what --base-model or the lineage says
		always string // whatever the Hub says: "open" or "closed"
	}{
		"a repo":                         {m: model.Model{ID: repo}, from: repo},
		"a repo of another Hub":          {m: model.Model{ID: repo, Endpoint: "https://hub.example"}, from: repo},
		"a private repo of another Hub":  {m: model.Model{ID: repo, Endpoint: "https://hub.example", Private: true}, from: repo, always: "closed"},
		"a snapshot in the cache":        {m: local(model.Lineage{Repo: repo, Commit: "c"}), from: repo},
		"a snapshot, with another repo":  {m: local(model.Lineage{Repo: repo, Commit: "c"}), from: open},
		"a snapshot of an open one":      {m: local(model.Lineage{Repo: open, Commit: "c"}), from: repo},
		"a snapshot, with no repo":       {m: local(model.Lineage{Repo: repo, Commit: "c"})},
		"a folder with a repo":           {m: local(model.Lineage{}), from: repo},
		"a folder that was downloaded":   {m: local(model.Lineage{Commit: "c"}), always: "closed"},
		"a folder that was, with a repo": {m: local(model.Lineage{Commit: "c"}), from: repo},
		"a folder without lineage":       {m: local(model.Lineage{}), always: "open"},
	}
	for answer, source := range says {
		for way, tt := range ways {
			for _, ask := range []string{"", "private", "public"} {
				for _, there := range []string{"", "open", "gated manually", "private"} {
					if way == "a repo" && (answer == "not found" || answer == "fails") {
						continue // which was just read
					}
					t.Run(fmt.Sprintf("%s, %s, asked for %s, target %s", way, answer, cmp.Or(ask, "nothing"), there), func(t *testing.T) {
						srv := hubtest.Start(t, hubtest.WithUser(token, hubtest.User{Name: "me", All: true}))
						srv.AddRepo(open, nil)
						if source != nil {
							srv.AddRepo(repo, nil, source...)
						}
						if there != "" {
							srv.AddRepo("me/target", nil, map[string]options{"private": says["private"], "gated manually": says["gated manually"]}[there]...)
						}
						c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: srv.URL, Token: token, Clock: hubtest.NewJumpClock(time.Now())}})
						world.Must(t, err)
						if answer == "fails" {
							srv.Inject(hubtest.Fault{Path: "/api/models/" + repo + "*", Times: hubtest.Always, Action: hubtest.Error(500, "", "no")})
						}
						m := tt.m
						if way == "a repo" {
							info, err := c.Info(t.Context(), repo, "")
							world.Must(t, err)
							m.Endpoint, m.Private, m.Gated = srv.URL, info.Private, info.Gated
						}
						push := Push{Hub: c, Repo: "me/target"}
						if ask != "" {
							push.Private = new(ask == "private")
						}
						closed := answer != "public" && tt.always != "open" || tt.always == "closed"
						private := ask == "private" || ask == "" && closed
						refused := there == "open" && private || there == "gated manually" && ask == "private"
						owner := NewOwner(&plan.Plan{}, Origin{Repo: tt.from}, "", false)
						_, err = OpenRepo(t.Context(), push, owner, &m)
						_, _, status := push.State(t.Context(), owner, &m)
						for _, err := range []error{err, status} {
							if v := (*VisibilityError)(nil); errors.As(err, &v) != refused || !refused && err != nil {
								t.Fatalf("got %v, want it refused: %v", err, refused)
							}
						}
						if there == "" && srv.IsPrivate("me/target") != private {
							t.Errorf("the new target is private: %v", !private)
						}
					})
				}
			}
		}
	}
}
