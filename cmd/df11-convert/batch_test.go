package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestBatchNeverMixesTwoModels checks that batch refuses a list before any work if two of its
// models would go into one target.
func TestBatchNeverMixesTwoModels(t *testing.T) {
	for text, good := range map[string]bool{
		"{source: org/a}, {source: org/b}":                               true,
		"{source: org/a}, {source: org/a}":                               false,
		"{source: org/a, repo-id: me/a}, {source: org/a, repo-id: me/b}": true,
		"{source: org/a, repo-id: me/a}, {source: org/b, repo-id: me/a}": false,
		"org/a, other/a":                              false,
		"org/a, org/a@v1":                             false,
		"org/a, 'https://huggingface.co/org/a'":       false,
		"org/a, {source: org/b, repo-id: a-DF11}":     false,
		"org/a, {source: org/b, repo-id: You/A-DF11}": false,
		"org/a, {source: org/b, repo-id: me/a-DF11}":  true,
	} {
		models, err := listOf(t, "models: ["+text+"]")
		if err == nil {
			err = distinct(models, "you")
		}
		if (err == nil) != good || err != nil && kindOf(err).code != exitUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestAnEntryWinsOverTheCommandLine checks that no flag of the command line spoils or changes an
// entry of the list.
func TestAnEntryWinsOverTheCommandLine(t *testing.T) {
	yes, no := true, false
	f := convertFlags{target: targetFlags{push: true, public: true}}
	f.recipe.PatternDict, f.recipe.Like = "dict.json", "llama"
	for _, m := range []listedModel{{Private: &yes}, {Private: &no}, {Dict: "own.json"}, {Like: "qwen3"}, {Component: "unet"}, {File: "x.safetensors"}} {
		got := m.flags(f)
		switch err := checkTarget(got); {
		case err != nil:
			t.Errorf("%+v: %v", m, err)
		case m.Private != nil && got.target.private != *m.Private, got.recipe.Component != m.Component, got.recipe.File != m.File,
			(m.Dict != "" || m.Like != "") && (got.recipe.PatternDict != m.Dict || got.recipe.Like != m.Like):
			t.Errorf("%+v becomes %+v, %q, %q", m, got.target, got.recipe.PatternDict, got.recipe.Like)
		}
	}
}

// TestNoEntryOpensWhatAFlagCloses checks, for every flag about who may see a target and every value
// of an entry, that a list runs only if the target is as closed as the stricter one says, or
// refuses it before it asks the Hub anything.
func TestNoEntryOpensWhatAFlagCloses(t *testing.T) {
	for _, flags := range []targetFlags{{}, {private: true}, {public: true}} {
		for _, text := range []string{"", ", private: true", ", private: false"} {
			f := convertFlags{target: flags}
			f.target.push = true
			list := filepath.Join(t.TempDir(), "list.yaml")
			world.Write(t, list, "models: [{source: org/m, repo-id: me/m"+text+"}]")
			models, err := f.models(t.Context(), newUI(os.Stdout, os.Stderr), list)
			contradict := flags.private && text == ", private: false"
			if (err != nil) != contradict || contradict && (kindOf(err).code != exitUsage || !strings.Contains(err.Error(), "org/m")) {
				t.Errorf("%+v, %q: %v", flags, text, err)
			}
			for _, m := range models {
				if got := m.flags(f); flags.private && !got.target.private || flags.private && got.target.public {
					t.Errorf("%+v, %q: the target isn't private", flags, text)
				}
			}
		}
	}
}

func checkTarget(f convertFlags) error {
	o, err := f.options(newUI(os.Stdout, os.Stderr))
	if err == nil {
		err = o.CheckTarget()
	}
	return err
}

// TestReadList checks that the program and the schema accept lists as editors write them, and
// refuse others. The program calls those usage errors.
func TestReadList(t *testing.T) {
	yes := true
	for text, want := range map[string]listedModel{
		"\ufeffmodels:\r\n- source: org/a\r\n": {Source: "org/a"},
		"models:\n- org/a\n":                   {Source: "org/a"},
		"models: [org/a@v1]":                   {Source: "org/a", Revision: "v1"},
		"models: [{source: org/a, component: unet, file: x.safetensors}]": {Source: "org/a", Component: "unet", File: "x.safetensors"},
		"models:\n- source: org/a\n  revision: v1\n  repo-id: me/a\n":     {Source: "org/a", Revision: "v1", RepoID: "me/a"},
		"models: [hf://org/a, ]":                                                       {Source: "org/a"},
		"models: ['https://huggingface.co/org/a/tree/v1']":                             {Source: "org/a", Revision: "v1"},
		"models:\n- source: org/a\n  like: llama\n  private: true\n  layout: single\n": {Source: "org/a", Like: "llama", Private: &yes, Layout: "single"},
		"models:\n- {source: org/a, expect: not_convertible}\n":                        {Source: "org/a", Expect: expectRefusal},
		"models:\n- &a {source: org/a, like: llama}\n":                                 {Source: "org/a", Like: "llama"},
		"models:\n- {source: org/a, like: llama, pattern-dict: /a.json}\n":             {Source: "org/a", Like: "llama", Dict: "/a.json"},
	} {
		if got, err := listOf(t, text); err != nil || !reflect.DeepEqual(got, []listedModel{want}) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		schemaAgrees(t, text, true)
	}
	entry := func(members string) string { return "models: [{source: a/b, " + members + "}]" }
	for _, text := range []string{
		"", "org/a\norg/b\n", "- org/a\n", "models: org/a\n", "models:\n", "models: [7]", "models: [org/a, null]", "models: [[org/a]]", "models: ['']", "models: [./a]", "models: [/a/b]", "models: [a/b/c.safetensors]",
		"models: [org/a@]", "models: [{source: org/a@}]", "models: [org/a]\nmore: 1\n", "models:\n- repo-id: me/a\n", entry("repo: b"),
		"models: [{source: a/b@v1, revision: v2}]", entry("repo-id: a b"), entry("expect: current"),
		entry("repo-id: me/a--b"), entry("repo-id: me/a..b"), entry("repo-id: me/a.git"), entry("repo-id: a/b/c"), entry("repo-id: -a"),
		entry("repo-id: a-"), entry("repo-id: " + strings.Repeat("a", 97)),
	} {
		if got, err := listOf(t, text); kindOf(err).code != exitUsage {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		schemaAgrees(t, text, false)
	}
}

// TestMembers checks that the program and the schema know the same members, and that no hint for a
// list names a flag that an entry has instead.
func TestMembers(t *testing.T) {
	schema, err := os.ReadFile("../../docs/models.schema.json")
	world.Must(t, err)
	var doc struct {
		Defs struct {
			Entry struct{ Properties map[string]any }
		} `json:"$defs"`
	}
	world.Must(t, json.Unmarshal(schema, &doc))
	b, err := yaml.Marshal(listedModel{})
	world.Must(t, err)
	var known map[string]any
	world.Must(t, yaml.Unmarshal(b, &known))
	if got, want := slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(doc.Defs.Entry.Properties)); !slices.Equal(got, want) {
		t.Errorf("the program knows %q, the schema %q", got, want)
	}
	for _, flag := range entryFlags {
		if _, ok := known[flag]; !ok {
			t.Errorf("a list offers neither the flag %s nor a member of that name", flag)
		}
	}
}

func listOf(t *testing.T, text string) ([]listedModel, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.yaml")
	world.Write(t, file, text)
	return readList(t.Context(), file)
}

var listSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile("../../docs/models.schema.json")
})

// schemaAgrees checks that the schema accepts or refuses a list as the program does.
func schemaAgrees(t *testing.T, text string, good bool) {
	t.Helper()
	schema, err := listSchema()
	world.Must(t, err)
	var doc any
	world.Must(t, yaml.Unmarshal([]byte(text), &doc))
	if wrong := schema.Validate(doc); (wrong == nil) != good {
		t.Errorf("%q: good is %v, the schema says %v", text, good, wrong)
	}
}

// TestSlices checks that every model of a list is in one slice, which the order of the list doesn't
// change, and that slices differ by at most one model.
func TestSlices(t *testing.T) {
	var all []listedModel
	for i := range 600 {
		all = append(all, listedModel{Source: fmt.Sprintf("org/m%d", i%300), RepoID: fmt.Sprintf("me/t%d", i)})
	}
	mixed := slices.Clone(all)
	slices.Reverse(mixed)
	for _, n := range []int{1, 2, 7, 11} {
		seen := map[string]bool{}
		for i := range n {
			part := spans.Part{I: i + 1, N: n}
			mine, theirs := slice(all, part), slice(mixed, part)
			slices.Reverse(theirs)
			if !slices.Equal(mine, theirs) || len(mine) != len(all)/n && len(mine) != len(all)/n+1 {
				t.Errorf("slice %v has %d models, in another order %d", part, len(mine), len(theirs))
			}
			for _, m := range mine {
				if seen[m.RepoID] {
					t.Errorf("%d slices: %s is in two", n, m.RepoID)
				}
				seen[m.RepoID] = true
			}
		}
		if len(seen) != len(all) {
			t.Errorf("%d slices have %d models", n, len(seen))
		}
	}
}

// TestSlicesOfALongList takes a few slices of the longest list for as many machines as can share
// one. No machine looks at every pair of a model and a slice: that would take a quarter of an hour.
func TestSlicesOfALongList(t *testing.T) {
	all := make([]listedModel, 60_000)
	for i := range all {
		all[i].Source = fmt.Sprintf("o/m%d", i)
	}
	seen := map[string]bool{}
	for _, i := range []int{1, 2, 8000, spans.MaxParts} {
		mine := slice(all, spans.Part{I: i, N: spans.MaxParts})
		if least := len(all) / spans.MaxParts; len(mine) != least && len(mine) != least+1 {
			t.Errorf("slice %d has %d models", i, len(mine))
		}
		for _, m := range mine {
			if seen[m.Source] {
				t.Errorf("%s is in two slices", m.Source)
			}
			seen[m.Source] = true
		}
	}
}

// TestModelsKeepTheirSlice checks what happens to the other models when one leaves a list: most
// stay where they are, and no slice of 20 models on 8 machines is empty.
func TestModelsKeepTheirSlice(t *testing.T) {
	for _, c := range []struct{ models, n, moved int }{{20, 8, 15}, {60, 8, 10}, {200, 16, 5}} {
		at := func(list []listedModel) map[string]int {
			where := map[string]int{}
			for i := range c.n {
				mine := slice(list, spans.Part{I: i + 1, N: c.n})
				if len(mine) == 0 {
					t.Errorf("%d models, %d machines: slice %d is empty", len(list), c.n, i+1)
				}
				for _, m := range mine {
					where[m.Source] = i
				}
			}
			return where
		}
		var all []listedModel
		for i := range c.models {
			all = append(all, listedModel{Source: fmt.Sprintf("org/model-%d", i)})
		}
		before, moved := at(all), 0
		const tries = 6
		for i := range tries {
			for source, slice := range at(slices.Delete(slices.Clone(all), i, i+1)) {
				if before[source] != slice {
					moved++
				}
			}
		}
		if percent := 100 * moved / (tries * (c.models - 1)); percent > c.moved {
			t.Errorf("%d models, %d machines: without one model, %d%% of the others move", c.models, c.n, percent)
		}
	}
}

// TestAnOutageIsNotTheModelsFault checks a list during which the network, the Hub, or the token
// fails from the second model's first weight on. If that lasts four minutes, no model fails. If it
// lasts for ever, the list ends after five minutes, whatever the model's own requests have waited,
// and the report has what was published and what wasn't tried.
func TestAnOutageIsNotTheModelsFault(t *testing.T) {
	page := hubtest.Header{"Content-Type": "text/html"}
	cut := func(*hubtest.Exchange) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		host   string // "" is any
		answer hubtest.Action
		code   int
		ends   bool // the list, if it lasts for ever
	}{
		"login page":       {"", hubtest.Status(200, page, "<html>"), exitError, true},
		"login page, 403":  {"", hubtest.Status(403, page, "<html>"), exitError, true},
		"page, no type":    {"", hubtest.Status(403, hubtest.Header{"Content-Type": ""}, "<html>"), exitError, true},
		"empty answers":    {"hub.test", hubtest.Status(200, nil, ""), exitError, true},
		"token refused":    {"hub.test", hubtest.Error(401, "", "Invalid credentials in Authorization header"), exitAuth, true},
		"no repo is there": {"hub.test", hubtest.Error(404, "RepoNotFound", "Repository not found"), exitError, false},
		"500 with words":   {"hub.test", hubtest.Error(500, "", "Internal Error - We're working hard to fix this as soon as possible!"), exitError, true},
		"503":              {"", hubtest.Status(503, nil, ""), exitError, true},
		"no connection":    {"", cut, exitError, true},
		"blocked storage":  {"storage.test", cut, exitError, true},
		"storage refuses":  {"storage.test", hubtest.Status(403, nil, ""), exitError, true},
	} {
		for _, lasts := range []time.Duration{4 * time.Minute, 24 * time.Hour} {
			t.Run(fmt.Sprint(name, lasts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, file := fourModels(t, inMemory)
					var begun atomic.Int64 // after the start
					start := time.Now()
					since := func() time.Duration { return time.Since(start) - time.Duration(begun.Load()) }
					s.Inject(hubtest.Fault{Path: "*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
						if strings.HasPrefix(x.Request.URL.Path, "/org/m1/resolve/") && s.Head("tester/m0-DF11", "main") != "" {
							begun.CompareAndSwap(0, int64(max(1, time.Since(start))))
						}
						if begun.Load() != 0 && since() < lasts && strings.Contains(x.Request.URL.Host, c.host) {
							c.answer(x)
							return
						}
						x.Next(x.ResponseWriter)
					}})
					found, diag, err := newNight(t, s, file).run(t.Context(), t)
					if lasts < 5*time.Minute {
						if err != nil || found.Outcomes[outcomeConverted] != 4 {
							t.Errorf("%v, %v\n%s", err, found.Outcomes, diag)
						}
						return
					}
					if err == nil || kindOf(err).code != c.code || len(found.Models) != 4 || found.Outcomes[outcomeFailed] == 0 ||
						found.Outcomes[outcomeConverted] != 1 || (found.Outcomes[outcomeNotTried] > 0) != c.ends {
						t.Errorf("%v, %v\n%s", err, found.Outcomes, diag)
					}
					if took := since().Round(time.Second); c.ends && (took < 5*time.Minute || took > 6*time.Minute) {
						t.Errorf("ended %v after the last good answer\n%s", took, diag)
					}
				})
			})
		}
	}
}

// TestAListThatBeginsInAnOutage checks that a list that begins while the Hub answers with nothing,
// as when another machine's list has met that before, waits for the Hub as it waits for one that is
// overloaded.
func TestAListThatBeginsInAnOutage(t *testing.T) {
	for name, answer := range map[string]hubtest.Action{
		"empty answers": hubtest.Status(200, nil, ""), "503": hubtest.Status(503, nil, ""),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, file := fourModels(t, inMemory)
				start := time.Now()
				s.Inject(hubtest.Fault{Path: "*", Host: hubtest.HostHub, Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
					if time.Since(start) < 4*time.Minute {
						answer(x)
						return
					}
					x.Next(x.ResponseWriter)
				}})
				if found, diag, err := newNight(t, s, file).run(t.Context(), t); err != nil || found.Outcomes[outcomeConverted] != 4 {
					t.Errorf("%v, %v\n%s", err, found.Outcomes, diag)
				}
			})
		})
	}
}

// fourModels is a Hub with four models, and a list of them.
func fourModels(t *testing.T, opts ...hubtest.Option) (s *hubtest.Server, list string) {
	t.Helper()
	s = startHub(t, "hf_any", opts...)
	var ids []string
	for i := range 4 {
		ids = append(ids, fmt.Sprintf("org/m%d", i))
		s.AddModel(ids[i], hubtest.NewLlama(uint64(i), hubtest.ModelOptions{Hidden: 32, Vocab: 128, Layers: 1, Extra: hubtest.OwnPicture}))
	}
	list = filepath.Join(t.TempDir(), "list.yaml")
	world.Write(t, list, []byte("models: ["+strings.Join(ids, ", ")+"]"))
	return s, list
}

// TestAListCountsWhatItDid checks the totals of a list: what was committed, whatever was uploaded,
// and what was read, whatever earlier runs have done.
func TestAListCountsWhatItDid(t *testing.T) {
	s, list := fourModels(t)
	work := t.TempDir()
	batch := func() (found batchReport) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "out")
		stdout, err := os.Create(out)
		world.Must(t, err)
		defer stdout.Close()
		u := newUI(stdout, os.Stderr)
		execute(t.Context(), u, []string{"batch", list, "--push", "--json", "--work-dir", work})
		world.Must(t, json.Unmarshal(world.Read(t, out), &found))
		return found
	}
	refuse := true
	s.Inject(hubtest.Fault{Method: "POST", Path: "*/commit/*", Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		if refuse {
			hubtest.Error(403, "", "You have reached the limit of commits")(x)
			return
		}
		x.Next(x.ResponseWriter)
	}})
	if found := batch(); found.Read == 0 || found.Published != 0 || found.Outcomes[outcomeFailed] == 0 {
		t.Errorf("without a commit: %d read, %d published, %v", found.Read, found.Published, found.Outcomes)
	}
	refuse = false
	found := batch()
	if found.Published == 0 || found.Outcomes[outcomeConverted] != 4 {
		t.Errorf("%d read, %d published, %v", found.Read, found.Published, found.Outcomes)
	}
	var sizes int64
	for _, r := range found.Models {
		sizes += r.Report.Sizes.DF11
	}
	if found.Published > sizes {
		t.Errorf("%d of %d bytes published", found.Published, sizes)
	}
	for i := range 4 { // only the card changes
		s.Push(fmt.Sprintf("org/m%d", i), "main", map[string][]byte{"LICENSE": []byte("mit")})
	}
	if found := batch(); found.Read != 0 || found.Published != 0 || found.Outcomes[outcomeConverted] != 4 {
		t.Errorf("renewed: %d read, %d published, %v", found.Read, found.Published, found.Outcomes)
	}
}

// TestAStoppedListSaysWhatItHasDone checks the report of a list that a signal ends.
func TestAStoppedListSaysWhatItHasDone(t *testing.T) {
	s, list := fourModels(t)
	ctx, stop := context.WithCancelCause(t.Context())
	s.Inject(hubtest.Fault{Host: hubtest.HostHub, Method: "POST", Path: "*tester/m1-DF11/commit*", Action: func(x *hubtest.Exchange) {
		stop(errInterrupted)
		x.Next(x.ResponseWriter)
	}})
	out := filepath.Join(t.TempDir(), "out")
	stdout, err := os.Create(out)
	world.Must(t, err)
	defer stdout.Close()
	code := execute(ctx, newUI(stdout, stdout), []string{"batch", list, "--push", "--work-dir", t.TempDir()})
	text := string(world.Read(t, out))
	for _, want := range []string{"converted +org/m0", "stopped +org/m1", "not tried +org/m2", "not tried +org/m3", "1 converted, 2 not tried, 1 stopped,"} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("exit %d, no %q in %s", code, want, text)
		}
	}
	if code != exitInterrupted {
		t.Errorf("exit %d", code)
	}
}
