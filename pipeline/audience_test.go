package pipeline_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestTheAudienceIsKnownBefore checks which targets strangers don't see, before a run says their
// names. What a Hub doesn't state, or shows to no one without a token, counts as hidden.
func TestTheAudienceIsKnownBefore(t *testing.T) {
	s := hubtest.Start(t, hubtest.InMemory("https://hub.test", "https://storage.test"))
	s.AddModel("org/m", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 32, Vocab: 128, Layers: 1}))
	s.AddRepo("tester/m-DF11", nil)
	s.AddRepo("tester/shut", nil, hubtest.Private())
	s.AddRepo("tester/gated", nil, hubtest.Gated("auto"))
	s.AddRepo("tester/odd", nil, hubtest.Described(func(info map[string]any) { delete(info, "private") }))
	s.AddRepo("tester/shut-gated", nil, hubtest.Private(), hubtest.Gated("auto"))
	s.AddRepo("tester/empty", nil) // without a branch, as a Hub may have it for a moment
	s.Inject(hubtest.Fault{Path: "/api/models/tester/empty*", Times: hubtest.Always,
		Action: hubtest.Error(404, "RevisionNotFound", "Invalid rev id: main")})
	for name, c := range map[string]struct {
		token, repo string
		asks        pipeline.Visibility
		want        pipeline.Audience
	}{
		"open, by default": {"hf_any", "", "", pipeline.Audience{Repo: "tester/m-DF11"}},
		"asked":            {"hf_any", "", pipeline.Private, pipeline.Audience{Repo: "tester/m-DF11", Hidden: true}},
		"absent":           {"hf_any", "new", "", pipeline.Audience{Repo: "tester/new"}},
		"absent, asked":    {"hf_any", "new", pipeline.Private, pipeline.Audience{Repo: "tester/new", Hidden: true}},
		"private":          {"hf_any", "shut", "", pipeline.Audience{Repo: "tester/shut", Hidden: true}},
		"private, public":  {"hf_any", "shut", pipeline.Public, pipeline.Audience{Repo: "tester/shut", Hidden: true}},
		"gated":            {"hf_any", "gated", "", pipeline.Audience{Repo: "tester/gated"}},
		"private, gated":   {"hf_any", "shut-gated", "", pipeline.Audience{Repo: "tester/shut-gated", Hidden: true}},
		"without a branch": {"hf_any", "empty", "", pipeline.Audience{Repo: "tester/empty", Hidden: true}},
		"absent, no token": {"", "tester/new", "", pipeline.Audience{Repo: "tester/new", Hidden: true}},
		"unstated":         {"hf_any", "odd", "", pipeline.Audience{Repo: "tester/odd", Hidden: true}},
		"no token":         {"", "tester/shut", "", pipeline.Audience{Repo: "tester/shut", Hidden: true}},
		"no token, open":   {"", "tester/m-DF11", "", pipeline.Audience{Repo: "tester/m-DF11"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := pipeline.Options{Repo: c.repo, Visibility: c.asks, Means: pipeline.Means{Hubs: &pipeline.Hubs{
				Options: &hub.Options{Connection: hub.Connection{Endpoint: s.URL, Token: c.token, HTTPTransport: s}}}}}
			got, err := pipeline.AudienceOf(t.Context(), "org/m", o)
			if err != nil || *got != c.want {
				t.Errorf("%+v, %v, want %+v", got, err, c.want)
			}
		})
	}
	for _, q := range s.Requests() {
		if q.Method != "GET" && q.Method != "HEAD" {
			t.Errorf("it sends %s %s", q.Method, q.Path)
		}
	}
}
