package publish

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// absent marks a member that a Hub's answer doesn't have.
type absent struct{}

// saying returns what a Hub says about a repo.
func saying(private, gated any) hubtest.RepoOption {
	return hubtest.Described(func(info map[string]any) {
		for name, value := range map[string]any{"private": private, "gated": gated} {
			if info[name] = value; value == (absent{}) {
				delete(info, name)
			}
		}
	})
}

func clientOf(t *testing.T, s *hubtest.Server) *hub.Client {
	t.Helper()
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: s.URL, Token: "hf_secret",
		Clock: hubtest.NewJumpClock(time.Now())}})
	world.Must(t, err)
	return c
}

// TestVisibility checks who may see a target, for every source, everything that a Hub can say about
// the repo of the weights, and every flag. Without a flag, a target is open only if a Hub that
// strangers can ask says both private: false and gated: false of a repo with these very weights.
func TestVisibility(t *testing.T) {
	const repo, file = "org/m", "model.safetensors"
	me := hubtest.WithUser("hf_secret", hubtest.User{Name: "me", All: true})
	here, there := hubtest.Start(t, me), hubtest.Start(t, me)
	weights := map[string][]byte{file: []byte("weights")}
	for _, s := range []*hubtest.Server{here, there} {
		s.AddRepo(repo, weights)
	}
	there.AddRepo("org/internal", weights)
	there.AddRepo("org/other", weights)
	here.AddRepo("org/other", map[string][]byte{file: []byte("Weights")})

	// described is a source as its Hub describes it now.
	described := func(s *hubtest.Server, id string) *model.Model {
		c := clientOf(t, s)
		info, err := c.Info(t.Context(), id, "")
		world.Must(t, err)
		m := model.Described(info, c)
		m.Listing.Weights = []plan.WeightFile{{File: plan.File{Path: file, Size: 7}}}
		m.SHA256 = []string{world.Sum([]byte("weights"))}
		return m
	}
	local := &model.Model{ID: "m", Local: true}
	proved := func() *model.Model {
		m := described(here, repo)
		m.Local, m.ID, m.Endpoint, m.Commit = true, "m", "", ""
		return m
	}
	mirrored := func(id string) func() *model.Model {
		return func() *model.Model { return described(there, id) }
	}
	sources := map[string]struct {
		m func() *model.Model
		// the target's Hub has a public repo with these weights, if the source's Hub says so
		public bool
	}{
		"a repo":                                   {func() *model.Model { return described(here, repo) }, true},
		"a folder that equals a repo":              {proved, true},
		"a folder":                                 {func() *model.Model { return local }, false},
		"a repo of another Hub":                    {mirrored(repo), true},
		"a repo that only another Hub has":         {mirrored("org/internal"), false},
		"a repo with other weights at another Hub": {mirrored("org/other"), false},
		"other weights at a commit of one name": {func() *model.Model {
			m := described(there, "org/other")
			m.Origin.Commit = here.Head("org/other", "main")
			return m
		}, false},
	}
	forms := []any{false, true, "auto", "manual", "no", "", 0, nil, map[string]any{"mode": "auto"}, absent{}}
	for _, private := range forms {
		for _, gated := range forms {
			for _, s := range []*hubtest.Server{here, there} {
				for _, id := range []string{repo, "org/internal", "org/other"} {
					if s == there || id == repo {
						s.Configure(id, saying(private, gated))
					}
				}
			}
			for name, source := range sources {
				m := source.m()
				for _, flag := range []*bool{nil, new(true), new(false)} {
					push := &Push{Hub: clientOf(t, here), Private: flag}
					v := push.Visibility(t.Context(), m)
					want := source.public && private == false && gated == false
					if flag != nil {
						want = !*flag
					}
					if v.Open != want || v.Asked != (flag != nil) || v.Why == "" {
						t.Errorf("%s, private: %v, gated: %v, --private %v: got %+v", name, private, gated, flag, v)
					}
				}
			}
		}
	}
	// the target's Hub says something else about the same repo, or doesn't answer
	for _, s := range []*hubtest.Server{here, there} {
		s.Configure(repo, saying(false, false))
	}
	mirror := &Push{Hub: clientOf(t, here)}
	if !mirror.Visibility(t.Context(), described(there, repo)).Open {
		t.Error("a repo that both Hubs call public isn't")
	}
	here.Configure(repo, saying(false, "auto"))
	if mirror.Visibility(t.Context(), described(there, repo)).Open {
		t.Error("open, although the target's Hub calls the repo gated")
	}
	here.Inject(hubtest.Fault{Path: "/api/models/" + repo + "*", Times: hubtest.Always, Action: hubtest.Error(500, "", "no")})
	if mirror.Visibility(t.Context(), described(there, repo)).Open {
		t.Error("open, although the target's Hub doesn't answer")
	}
}

// TestTargetsKeepTheirVisibility checks that a target is created as it may be seen, and that an
// existing one is refused if strangers can open it and may not. What a Hub says of it in an unknown
// form closes nothing.
func TestTargetsKeepTheirVisibility(t *testing.T) {
	type source struct {
		repo    string // "" for a local source
		private *bool
		open    bool
	}
	sources := map[string]source{
		"local": {}, "closed": {repo: "org/closed"}, "open": {repo: "org/m", open: true},
		"--private": {repo: "org/m", private: new(true)}, "--public": {private: new(false), open: true},
	}
	targets := map[string][]hubtest.RepoOption{
		"": nil, "open": {}, "gated": {hubtest.Gated("auto")}, "manual": {hubtest.Gated("manual")},
		"private": {hubtest.Private()}, "unclear": {saying("yes", map[string]any{})}, "silent": {saying(absent{}, absent{})},
	}
	for asked, source := range sources {
		for there, options := range targets {
			t.Run(fmt.Sprintf("%s, target %q", asked, there), func(t *testing.T) {
				s := hubtest.Start(t, hubtest.WithUser("hf_secret", hubtest.User{Name: "me", All: true}))
				if there != "" {
					s.AddRepo("me/target", nil, options...)
				}
				s.AddRepo("org/m", nil)
				s.AddRepo("org/closed", nil, hubtest.Private())
				push := Push{Hub: clientOf(t, s), Repo: "me/target", Private: source.private}
				m := &model.Model{Local: true}
				if source.repo != "" {
					info, err := push.Hub.Info(t.Context(), source.repo, "")
					world.Must(t, err)
					m = model.Described(info, push.Hub)
				}
				closed := there == "private" || there == "manual" && source.private == nil
				refused := !source.open && there != "" && !closed
				run := NewConversion(&plan.Plan{}, OriginOf(m), "", false)
				opened, err := push.Open(t.Context(), run, m, nil)
				_, _, status := push.State(t.Context(), run, m)
				for _, err := range []error{err, status} {
					if e := (*VisibilityError)(nil); errors.As(err, &e) != refused || !refused && err != nil {
						t.Fatalf("got %v, want it refused: %v", err, refused)
					}
				}
				if refused {
					return
				}
				v := opened.Visibility()
				if stays := strings.Contains(v.String(), "stays private"); v.Why == "" || stays != (source.open && there == "private") {
					t.Errorf("the run says that the target %s", v)
				}
				if there == "" && s.IsPrivate("me/target") == source.open {
					t.Errorf("the new target is private: %v", !source.open)
				}
			})
		}
	}
}

// TestACreatedRepoIsLookedAt checks that a run looks at the repo that it has created, if it may not be
// public: a Hub may ignore that, and someone else may have been quicker.
func TestACreatedRepoIsLookedAt(t *testing.T) {
	s := hubtest.Start(t)
	s.Inject(hubtest.Fault{Method: "POST", Path: "/api/repos/create", Action: func(x *hubtest.Exchange) {
		x.Next(x.ResponseWriter)
		s.Configure("me/target", saying(false, false))
	}})
	push := Push{Hub: clientOf(t, s), Repo: "me/target"}
	m := &model.Model{Local: true}
	_, err := push.Open(t.Context(), NewConversion(&plan.Plan{}, OriginOf(m), "", false), m, nil)
	if refused, _ := errors.AsType[*VisibilityError](err); refused == nil || s.Count("POST", "/api/repos/create") != 1 {
		t.Errorf("got %v", err)
	}
}

// TestEveryCommitAsksAgain checks that a run commits nothing more once its source isn't public any
// more, or a target that must be closed is open. What the user said with a flag doesn't change.
func TestEveryCommitAsksAgain(t *testing.T) {
	const source, target = "org/m", "me/target"
	for what, tt := range map[string]struct {
		flag    *bool
		closed  bool // the source, from the beginning
		turns   string
		private bool
		commits bool
	}{
		"nothing turns":                           {commits: true},
		"the source is closed":                    {turns: source, private: true},
		"the source is closed, and --public":      {flag: new(false), turns: source, private: true, commits: true},
		"of a closed source, nothing turns":       {closed: true, commits: true},
		"of a closed source, the target is open":  {closed: true, turns: target},
		"with --private, the target is open":      {flag: new(true), turns: target},
		"with --private, nothing turns":           {flag: new(true), commits: true},
		"of an open source, the target is closed": {turns: target, private: true, commits: true},
	} {
		t.Run(what, func(t *testing.T) {
			s := hubtest.Start(t, hubtest.WithUser("hf_secret", hubtest.User{Name: "me", All: true}))
			s.AddRepo(source, nil)
			if tt.closed {
				s.Configure(source, hubtest.Private())
			}
			push := Push{Hub: clientOf(t, s), Repo: target, Private: tt.flag}
			info, err := push.Hub.Info(t.Context(), source, "")
			world.Must(t, err)
			m := model.Described(info, push.Hub)
			to, err := push.Open(t.Context(), NewConversion(&plan.Plan{Config: "config.json"}, OriginOf(m), "", false), m, nil)
			world.Must(t, err)
			if tt.turns != "" {
				s.Configure(tt.turns, saying(tt.private, false))
			}
			head := s.Head(target, "main")
			err = to.Finish(t.Context(), &Result{Summary: "Add m", Files: []SideFile{NewSideFile("config.json", "config", []byte("{}"))}})
			refused, _ := errors.AsType[*VisibilityError](err)
			if (err == nil) != tt.commits || (refused != nil) == tt.commits || refused != nil && !refused.Changed || (s.Head(target, "main") != head) != tt.commits {
				t.Errorf("got %v; main has moved: %v", err, s.Head(target, "main") != head)
			}
		})
	}
}
