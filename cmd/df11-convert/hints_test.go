package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// A mishap is a run that ends with an error, and what its hint says to do.
type mishap struct {
	kind pipeline.Kind
	// blanks separate arguments; DIR is a folder of the row's own
	args   string
	limits map[string]int64 // of the Hub's rules
	before func(h *helped)
	hint   string // a part of it
	// does what the hint says, besides changing the arguments
	follow func(h *helped)
	then   string // the new arguments; "" for the same
}

// helped is the world of one mishap: a folder, and a Hub with org/model.
type helped struct {
	*testing.T
	dir string
	hub *hubtest.Server
}

func (h *helped) write(name, content string) {
	world.Write(h.T, filepath.Join(h.dir, name), []byte(content))
}

// model writes a model into a folder.
func (h *helped) model(name string) string {
	dir := filepath.Join(h.dir, name)
	world.Must(h.T, smallModel(1).Write(dir))
	return dir
}

// shard returns the first weight file of a model in a folder.
func (h *helped) shard(name string) string {
	found, err := filepath.Glob(filepath.Join(h.model(name), "*.safetensors"))
	if err != nil || len(found) == 0 {
		h.Fatal("no weights", err)
	}
	return found[0]
}

// header changes the JSON header of a weight file.
func (h *helped) header(name, old, replacement string) {
	path := h.shard(name)
	b := world.Read(h.T, path)
	n := binary.LittleEndian.Uint64(b)
	text := strings.Replace(string(b[8:8+n]), old, replacement, 1)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	world.Write(h.T, path, append(append(out, text...), b[8+n:]...))
}

// mishaps are causes that have a hint, each with the step that it names.
var mishaps = []mishap{
	{kind: pipeline.ErrDiskBudget, args: "org/model --push --disk 1kB", hint: "raise --disk, or leave it out", then: "org/model --push"},
	{kind: pipeline.ErrConflict, args: "org/model -o DIR/out", before: func(h *helped) { h.write("out/config.json", "{}") },
		hint: "choose another target with -o", then: "org/model -o DIR/other"},
	{kind: pipeline.ErrConflict, args: "org/model -o DIR/out", before: func(h *helped) { h.write("out/config.json", "{}") },
		hint: "add --force", then: "org/model -o DIR/out --force"},
	{kind: pipeline.ErrSourceIsTarget, args: "org/model --push --repo-id org/model", hint: "choose another target", then: "org/model --push --repo-id tester/other"},
	{kind: pipeline.ErrVisibility, args: "org/secret --push --repo-id tester/open", before: func(h *helped) {
		h.hub.AddModel("org/secret", smallModel(1))
		h.hub.Configure("org/secret", hubtest.Private())
		h.hub.AddRepo("tester/open", nil)
	}, hint: "choose another target with --repo-id", then: "org/secret --push --repo-id tester/closed"},
	{kind: pipeline.ErrVisibility, args: "org/secret --push --repo-id tester/open", before: func(h *helped) {
		h.hub.AddModel("org/secret", smallModel(1))
		h.hub.Configure("org/secret", hubtest.Private())
		h.hub.AddRepo("tester/open", nil)
	}, hint: "make it private in its settings", follow: func(h *helped) { h.hub.Configure("tester/open", hubtest.Private()) }},
	{kind: pipeline.ErrCard, args: "DIR/m --push", before: func(h *helped) { h.model("m"); h.write("m/README.md", "---\nlicense: [mit\n---\n") },
		hint: "name the license with --license", then: "DIR/m --push --license mit"},
	{kind: pipeline.ErrOccupied, args: "decode DIR/out -o DIR/back", before: func(h *helped) { h.converted("out"); h.write("back/model-00001-of-00002.safetensors", "x") },
		hint: "choose another folder with -o", then: "decode DIR/out -o DIR/other"},
	{kind: pipeline.ErrOccupied, args: "decode DIR/out -o DIR/back", before: func(h *helped) { h.converted("out"); h.write("back/model-00001-of-00002.safetensors", "x") },
		hint: "add --force", then: "decode DIR/out -o DIR/back --force"},
	{kind: pipeline.ErrOwnInput, args: "decode DIR/out -o DIR/out", before: func(h *helped) { h.converted("out") },
		hint: "choose a folder outside it with -o", then: "decode DIR/out -o DIR/back"},
	{kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) {
		path := h.shard("m")
		b := world.Read(h.T, path)
		world.Write(h.T, path, b[:len(b)-100])
	}, hint: "fetch the file again", follow: func(h *helped) { h.model("m") }},
	{kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) {
		path := h.shard("m")
		world.Write(h.T, path, append(world.Read(h.T, path), "tail"...))
	}, hint: "truncate -s ", follow: func(h *helped) {
		path := h.shard("m")
		info, err := os.Stat(path)
		world.Must(h.T, err)
		world.Must(h.T, os.Truncate(path, info.Size()))
	}},
	{kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) { h.header("m", "{", `{"__metadata__":{"step":1},`) },
		hint: "strings as the values of its metadata", follow: func(h *helped) { h.header("m", "{", `{"__metadata__":{"step":"1"},`) }},
	{kind: pipeline.ErrHeader, args: "plan DIR/m", before: func(h *helped) { world.Write(h.T, h.shard("m"), []byte("Entry not found")) },
		hint: "fetch the file from its own address", follow: func(h *helped) { h.model("m") }},
	{kind: pipeline.ErrNotConvertible, args: "plan DIR/m", before: func(h *helped) {
		b := world.Read(h.T, h.shard("m"))
		h.write("m/model.safetensors", string(b))
	}, hint: "choose one with --file", then: "plan DIR/m --file model.safetensors.index.json"},
	{kind: pipeline.ErrNotConvertible, args: "plan DIR/m", before: func(h *helped) {
		world.Must(h.T, os.Remove(filepath.Join(h.model("m"), "model-00002-of-00002.safetensors")))
	}, hint: "complete the source", follow: func(h *helped) { h.model("m") }},
	{kind: pipeline.ErrNoOriginal, args: "verify DIR/out", before: func(h *helped) { h.converted("out") },
		hint: "--against", then: "verify DIR/out --against DIR/m"},
	{kind: pipeline.ErrUnauthorized, args: "org/model --push", before: func(h *helped) { h.Setenv("HF_TOKEN", "hf_wrong") },
		hint: "the token from HF_TOKEN is wrong or expired", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_right") }},
	{kind: pipeline.ErrUnauthorized, args: "org/model --push", before: func(h *helped) { h.Setenv("HF_TOKEN", "") },
		hint: "set HF_TOKEN", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_right") }},
	{kind: pipeline.ErrForbidden, args: "org/model --push --repo-id acme/x", hint: "choose your own namespace with --repo-id", then: "org/model --push --repo-id tester/x"},
	{kind: pipeline.ErrForbidden, args: "org/model --push", before: func(h *helped) { h.Setenv("HF_TOKEN", "hf_read") },
		hint: "make a token for writing", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_right") }},
	{kind: pipeline.ErrGated, args: "plan acme/gated", before: func(h *helped) {
		h.hub.AddModel("acme/gated", smallModel(1))
		h.hub.Configure("acme/gated", hubtest.Gated("manual"))
	}, hint: "request access at", follow: func(h *helped) { h.Setenv("HF_TOKEN", "hf_let_in") }},
	{kind: pipeline.ErrDisabled, args: "plan org/off", before: func(h *helped) {
		h.hub.AddModel("org/off", smallModel(1))
		h.hub.Configure("org/off", hubtest.Disabled())
	}, hint: "choose another source", then: "plan org/model"},
	{kind: pipeline.ErrNotFound, args: "plan org/modle", hint: `check the spelling of "org/modle"`, then: "plan org/model"},
	{kind: pipeline.ErrNotFound, args: "plan org/model@v9", hint: "check the revision after @", then: "plan org/model@main"},
	{kind: pipeline.ErrOffline, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_HUB_OFFLINE", "1") },
		hint: "unset HF_HUB_OFFLINE", follow: func(h *helped) { h.Setenv("HF_HUB_OFFLINE", "") }},
	{kind: pipeline.ErrPartsMissing, args: "org/model --push --finish", before: func(h *helped) { h.run("org/model --push --shard 1/2") },
		hint: "make those parts with --shard, then run --finish again", follow: func(h *helped) { h.run("org/model --push --shard 2/2") }},
	{kind: pipeline.ErrHub, args: "plan org/model", before: func(h *helped) { h.Setenv("HF_ENDPOINT", "http://127.0.0.1:9") },
		hint: "HF_ENDPOINT", follow: func(h *helped) { h.Setenv("HF_ENDPOINT", h.hub.URL) }},
	{kind: pipeline.ErrMemoryBudget, args: "plan DIR/m --memory 64MiB", before: func(h *helped) {
		h.model("m")
		h.write("m/model.safetensors.index.json", `{"metadata":{"x":"`+strings.Repeat("x", 20<<20)+`"},"weight_map":{}}`)
	}, hint: "raise --memory, or leave it out", then: "plan DIR/m"},
	{kind: pipeline.ErrNotExactF32, args: "plan DIR/m --exact-f32", before: func(h *helped) {
		h.header("m", `"dtype":"BF16","shape":[256,32]`, `"dtype":"F32","shape":[256,16]`)
	}, hint: "leave out --exact-f32", then: "plan DIR/m"},
	{kind: pipeline.ErrNotOriginal, args: "DIR/m -o DIR/out --original org/other", before: func(h *helped) {
		h.model("m")
		h.hub.AddModel("org/other", smallModel(2))
	}, hint: "leave --original out", then: "DIR/m -o DIR/out"},
	{kind: pipeline.ErrQuota, args: "DIR/m --push", limits: map[string]int64{"private storage": 10}, before: func(h *helped) { h.model("m") },
		hint: "choose another target with --repo-id", then: "DIR/m --push --repo-id org/m --public"},
	{kind: pipeline.ErrHubLimit, args: "org/model --push", limits: map[string]int64{"files in a folder": 9},
		hint: "choose another layout with --layout", then: "org/model --push --layout transformers-single"},
	{kind: pipeline.ErrCard, args: "org/model --push", before: func(h *helped) {
		h.hub.Inject(hubtest.Fault{Method: "POST", Path: "/api/validate-yaml", Times: 1, Action: hubtest.Error(400, "", "Invalid metadata in README.md.\n- x")})
	}, hint: "correct the value that it names", follow: func(*helped) {}},
	{kind: pipeline.ErrNotDF11, args: "verify DIR/m", before: func(h *helped) { h.model("m") }, hint: "", then: "plan DIR/m"},
	{kind: pipeline.ErrUsage, args: "plan DIR/none/model.safetensors", hint: "check", then: "plan org/model"},
}

// converted writes a model to m, and its conversion, which names no original.
func (h *helped) converted(name string) {
	h.model("m")
	h.run("DIR/m -o DIR/" + name)
}

func (h *helped) args(text string) []string {
	return strings.Fields(strings.ReplaceAll(text, "DIR", h.dir))
}

func (h *helped) run(text string) {
	if code, _, stderr := program(h.T, h.args(text)...); code != exitOK {
		h.Fatalf("%s: exit %d: %s", text, code, stderr)
	}
}

// ending is how a run ended, as --json says it.
type ending struct {
	Error struct {
		Kind    pipeline.Kind
		Message string
	}
	hints string
}

func (h *helped) fail(text string) (code int, f ending) {
	code, stdout, stderr := program(h.T, append(h.args(text), "--json")...)
	f.hints = stderr[max(0, strings.Index(stderr, "hint: ")):]
	if code != exitOK {
		world.Must(h.T, json.Unmarshal([]byte(stdout), &f))
	}
	return code, f
}

// unfollowed are the kinds of errors that have no hint, or one that no row can follow: a full disk, a
// race, a GPU. Next to each stands a test that brings it about.
var unfollowed = map[pipeline.Kind]string{
	pipeline.ErrInterrupted: "kill_test.go", pipeline.ErrDiskFull: "internal/convert/disk_linux_test.go",
	pipeline.ErrStructure: "forgery_test.go", pipeline.ErrInvalid: "forgeverdict_test.go",
	pipeline.ErrOtherOriginal: "forgeverdict_test.go", pipeline.ErrMismatch: "forgeverdict_test.go",
	pipeline.ErrAliasesDiffer: "agree_test.go", pipeline.ErrNewerTarget: "internal/convert/owner_test.go",
	pipeline.ErrTargetTaken: "internal/convert/race_test.go", pipeline.ErrTargetLost: "internal/convert/race_test.go",
	pipeline.ErrTargetWrong: "hub/witness_test.go", pipeline.ErrFolder: "workfolder_test.go",
	pipeline.ErrSourceChanged: "internal/convert/localsource_test.go", pipeline.ErrSourceCorrupt: "internal/convert/corrupt_test.go",
	pipeline.ErrLeftOut: "forgeverdict_test.go", pipeline.ErrHubConflict: "internal/convert/race_test.go",
	pipeline.ErrRateLimited: "hub/outage_test.go", pipeline.ErrFile: "sources_test.go",
	pipeline.ErrGPU: "internal/convert/gpu_test.go", pipeline.ErrOther: "anything",
}

// TestHintsHelp follows the hint of every kind of error. The error must be gone then, or another one.
func TestHintsHelp(t *testing.T) {
	for _, kind := range pipeline.Kinds() {
		rows := slices.ContainsFunc(mishaps, func(m mishap) bool { return m.kind == kind })
		if _, other := unfollowed[kind]; rows == other {
			t.Errorf("%s: has a row: %v, is tested elsewhere: %v", kind, rows, other)
		}
	}
	for _, m := range mishaps {
		t.Run(string(m.kind)+" "+m.hint, func(t *testing.T) {
			var limits []hubtest.Option
			for name, n := range m.limits {
				limits = append(limits, hubtest.WithLimit(name, n))
			}
			h := &helped{t, t.TempDir(), startHub(t, "hf_right", append(limits,
				hubtest.WithUser("hf_right", hubtest.User{Name: "tester", Orgs: []string{"org"}}),
				hubtest.WithUser("hf_read", hubtest.User{Name: "tester", ReadOnly: true}),
				hubtest.WithUser("hf_let_in", hubtest.User{Name: "tester", Granted: []string{"acme/gated"}}))...)}
			t.Chdir(t.TempDir())
			h.hub.AddModel("org/model", smallModel(1))
			if m.before != nil {
				m.before(h)
			}
			code, before := h.fail(m.args)
			if code == exitOK || before.Error.Kind != m.kind || !strings.Contains(before.hints, m.hint) {
				t.Fatalf("exit %d, %+v", code, before)
			}
			if m.follow != nil {
				m.follow(h)
			}
			then := m.then
			if then == "" {
				then = m.args
			}
			if code, after := h.fail(then); code != exitOK && after.Error.Message == before.Error.Message {
				t.Errorf("exit %d, and still %s", code, after.Error.Message)
			}
		})
	}
}
