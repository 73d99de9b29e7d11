package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events parses a stderr of which every line has to be a JSON object with a time, a level and a message.
func events(t *testing.T, stderr string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(stderr) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil || e["time"] == nil || e["level"] == nil || e["msg"] == nil {
			t.Errorf("stderr has the line %q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

// TestJSONLog: with --log-format json all of stderr is JSON: notes, warnings, progress and errors with their hints, even
// one about the flags themselves. --quiet leaves errors only.
func TestJSONLog(t *testing.T) {
	dir := t.TempDir()
	llama(t, filepath.Join(dir, "m"), "BF16", 0, "")
	args := []string{filepath.Join(dir, "m"), "-o", filepath.Join(dir, "out"), "--gpu", "off", "--log-format", "json"}
	code, _, stderr := program(t, args...)
	progress := false
	for _, e := range events(t, stderr) {
		progress = progress || e["msg"] == "progress" && e["bytes"] == e["bytes_total"] && e["files"] != nil
	}
	if code != exitOK || !progress {
		t.Errorf("exit %d, no progress in %s", code, stderr)
	}
	if code, _, stderr = program(t, append(args, "-q")...); code != exitOK || stderr != "" {
		t.Errorf("--quiet: exit %d, stderr %q", code, stderr)
	}
	for want, args := range map[int][]string{
		exitUsage:   {"--no-such-flag", "--log-format=json"},
		exitError:   {"verify", filepath.Join(dir, "nothing"), "--log-format", "json", "-q"},
		exitRefused: {"plan", filepath.Join(dir, "m"), "--like", "nobody/nothing", "--log-format", "json"},
	} {
		code, _, stderr := program(t, args...)
		es := events(t, stderr)
		if code != want && want != exitError || len(es) == 0 {
			t.Fatalf("%v: exit %d, stderr %q", args, code, stderr)
		}
		last := es[len(es)-1]
		if last["level"] != "ERROR" || last["exit_code"] != float64(code) {
			t.Errorf("%v: exit %d: %v", args, code, last)
		}
		if hints, _ := last["hints"].([]any); len(hints) == 0 {
			t.Errorf("%v: no hints in %v", args, last)
		}
	}
}

// TestFlagValues: what no command can mean is a wrong command line.
func TestFlagValues(t *testing.T) {
	dir := t.TempDir()
	llama(t, dir, "BF16", 0, "")
	for _, args := range [][]string{
		{"--log-format", "xyz"}, {"--workers", "-3"},
	} {
		if code, _, stderr := program(t, append([]string{"plan", dir}, args...)...); code != exitUsage || !strings.Contains(stderr, strings.SplitN(args[0], "=", 2)[0]) {
			t.Errorf("%v: exit %d, stderr %q", args, code, stderr)
		}
	}
	must(t, "plan", dir, "--workers", "0")
}

// TestReasons: plan and report say in words why a unit stays in BF16.
func TestReasons(t *testing.T) {
	dir := t.TempDir()
	c := newCheckpoint(1)
	for _, b := range []string{"model.layers.0.", "model.layers.1."} {
		c.add(b+"mlp.up_proj.weight", "BF16", 0, 32, 32)
	}
	for i := range c.data["model.layers.1.mlp.up_proj.weight"] {
		c.data["model.layers.1.mlp.up_proj.weight"][i] = 0x3f // one exponent in all weights
	}
	c.write(t, filepath.Join(dir, "model.safetensors"))
	writeTo(t, filepath.Join(dir, "config.json"), []byte(`{"model_type": "new"}`))
	for _, args := range [][]string{{"plan", dir}, {dir, "-o", filepath.Join(dir, "out")}} {
		if out := must(t, args...); !strings.Contains(out, "it has too few different exponents") || strings.Contains(out, "official_crash") {
			t.Errorf("%v prints\n%s", args, out)
		}
	}
}

// TestResumeNamesTheRunsOwnArguments: the command that continues is the one that was run, not that of the process.
func TestResumeNamesTheRunsOwnArguments(t *testing.T) {
	for _, args := range [][]string{{"./none", "-o", "a b"}, {"batch", "./none.yaml", "--push"}} {
		u := newUI(os.Stdout, os.Stderr)
		if err := rootCommand(u, args).ExecuteContext(t.Context()); err == nil {
			t.Fatal("it ran")
		}
		if want := resumeCommand("df11-convert", args); u.resume != want {
			t.Errorf("got %q, want %q", u.resume, want)
		}
	}
}
