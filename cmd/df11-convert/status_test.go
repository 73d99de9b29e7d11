package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// statusReport is the document of status --json.
type statusReport struct {
	Exit   int           `json:"exit_code"`
	Error  failure       `json:"error"`
	Bill   bill          `json:"bill"`
	Models []publication `json:"models"`
}

// status runs status, and returns its document, which follows the schema, or what it printed.
func (n *night) status(ctx context.Context, t *testing.T, asJSON bool, flags pageFlags) (r statusReport, text string) {
	t.Helper()
	u, read := captured(t)
	u.json, u.command = asJSON, "status"
	f := &convertFlags{sourceFlags: n.source(), target: targetFlags{push: true}}
	code := u.report(ctx, runStatus(ctx, u, f, flags, n.list))
	out, diag := read()
	if !asJSON {
		return statusReport{Exit: code}, out + diag
	}
	if err := checkDocument(code, out); err != nil {
		t.Error(err)
	}
	world.Must(t, json.Unmarshal([]byte(out), &r))
	return r, out
}

// TestStatusKnowsTheToken checks that status says of which targets the Hub says that the token may not
// write to them, that it says so with the hint of batch, that batch is indeed refused there and nowhere
// else, and that asking changes nothing.
func TestStatusKnowsTheToken(t *testing.T) {
	const list = "models: [org/m0, {source: org/m1, repo-id: acme/m1}, {source: org/m2, repo-id: acme/m2}, {source: org/m3, repo-id: lab/m3}]"
	for name, c := range map[string]struct {
		user    hubtest.User
		refused []string
		hint    string
	}{
		"all":            {hubtest.User{Name: "tester", Orgs: []string{"acme", "lab"}}, nil, ""},
		"role in org":    {hubtest.User{Name: "tester", Orgs: []string{"lab"}, Reads: []string{"acme"}}, []string{"org/m1", "org/m2"}, "ask an admin of the organization for the role write"},
		"reading":        {hubtest.User{Name: "tester", Orgs: []string{"acme", "lab"}, ReadOnly: true}, []string{"org/m0", "org/m1", "org/m2", "org/m3"}, "make a token for writing"},
		"one namespace":  {hubtest.User{Name: "tester", Orgs: []string{"acme", "lab"}, Writes: []string{"acme"}}, []string{"org/m0", "org/m3"}, "give the token from HF_TOKEN the right to create repo"},
		"one repo":       {hubtest.User{Name: "tester", Orgs: []string{"acme", "lab"}, Writes: []string{"tester", "acme/m2"}}, []string{"org/m1", "org/m3"}, "give the token from HF_TOKEN the right to"},
		"existing repos": {hubtest.User{Name: "tester", Orgs: []string{"lab"}}, []string{"org/m1", "org/m2"}, "the right to write to acme/m"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := fourModels(t, inMemory, hubtest.WithUser("hf_any", c.user))
				if name == "existing repos" || name == "one repo" {
					s.AddRepo("acme/m1", nil)
				}
				if name == "existing repos" {
					s.AddRepo("acme/m2", nil)
				}
				file := filepath.Join(t.TempDir(), "list.yaml")
				world.Write(t, file, list)
				n := newNight(t, s, file)
				r, doc := n.status(t.Context(), t, true, pageFlags{})
				var refused []string
				for _, m := range r.Models {
					if m.Error != nil {
						refused = append(refused, m.Source)
					}
					if m.State != pipeline.Absent && m.State != pipeline.Unfinished || m.Todo == (m.Error != nil) {
						t.Errorf("%+v", m)
					}
					if m.Error != nil && !strings.Contains(m.Error.Hint, c.hint) {
						t.Errorf("hint %q", m.Error.Hint)
					}
				}
				if fmt.Sprint(refused) != fmt.Sprint(c.refused) || r.Exit != exitError {
					t.Errorf("refused: %v, want %v\n%s", refused, c.refused, doc)
				}
				for _, q := range s.Requests() {
					if q.Method != "GET" && q.Method != "HEAD" {
						t.Errorf("status sends %s %s", q.Method, q.Path)
					}
				}
				_, text := n.status(t.Context(), t, false, pageFlags{})
				if said := strings.Count(text, "hint: "); (said > 0) != (c.hint != "") {
					t.Errorf("%d hints in %s", said, text)
				}
				b, diag, _ := n.run(t.Context(), t)
				for i, m := range b.Models {
					want := outcomeConverted
					if r.Models[i].Error != nil {
						want = outcomeFailed
					}
					if m.Outcome == outcomeNotTried { // the list, or the namespace, ended before
						continue
					}
					if m.Outcome != want || m.Error != nil && m.Error.Hint != r.Models[i].Error.Hint {
						t.Errorf("%s: %s, want %s; %+v, %+v\n%s", m.Source, m.Outcome, want, m.Error, r.Models[i].Error, diag)
					}
				}
			})
		})
	}
}

// TestStatusThatEndsEarly checks that status has rows for the models that it asked about before the
// network, the Hub, or the token failed, or someone stopped it, on the terminal, in JSON, and on the
// page.
func TestStatusThatEndsEarly(t *testing.T) {
	for name, c := range map[string]struct {
		meet hubtest.Action // nil is Ctrl-C
		code int
	}{
		"stopped": {nil, exitInterrupted},
		"token":   {hubtest.Error(401, "", "Invalid credentials in Authorization header"), exitAuth},
		"outage":  {hubtest.Status(503, nil, ""), exitError},
	} {
		for _, json := range []bool{false, true} {
			t.Run(fmt.Sprint(name, json), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, list := fourModels(t, inMemory)
					n := newNight(t, s, list)
					if _, diag, err := n.run(t.Context(), t); err != nil {
						t.Fatal(err, diag)
					}
					ctx, stop := context.WithCancelCause(t.Context())
					away := false
					s.Inject(hubtest.Fault{Path: "*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
						if away = away || strings.Contains(x.Request.URL.Path, "org/m2"); away && c.meet != nil {
							c.meet(x)
							return
						}
						if away {
							stop(errInterrupted)
						}
						x.Next(x.ResponseWriter)
					}})
					flags := pageFlags{html: filepath.Join(t.TempDir(), "page.html"), badges: filepath.Join(t.TempDir(), "badges")}
					r, text := n.status(ctx, t, json, flags)
					if r.Exit != c.code {
						t.Errorf("exit %d, want %d\n%s", r.Exit, c.code, text)
					}
					if page := string(world.Read(t, flags.html)); strings.Count(page, "the list ended before it") != 2 ||
						!strings.Contains(page, "tester/m1-DF11") || !strings.Contains(page, "</html>") {
						t.Errorf("the page says %s", page)
					}
					if badges, err := os.ReadDir(flags.badges); err != nil || len(badges) != 2 {
						t.Errorf("%d badges, %v", len(badges), err)
					}
					if json {
						states := map[pipeline.State]int{}
						for _, m := range r.Models {
							states[m.State]++
						}
						if len(r.Models) != 4 || states[pipeline.Current] != 2 || states[stateUnknown] != 2 || r.Error.Kind == "" {
							t.Errorf("%+v", r)
						}
						return
					}
					for _, want := range []string{"current org/m0 ", "current org/m1 ", "2 models not asked about"} {
						if !strings.Contains(oneSpace(text), want) {
							t.Errorf("no %q in %s", want, text)
						}
					}
				})
			})
		}
	}
}
