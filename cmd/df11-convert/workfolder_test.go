//go:build unix

package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// another runs the program with other arguments, the same hub, and the same HOME. It returns what
// the program wrote to stderr.
func (v *victim) another(t *testing.T, dir string, args ...string) (stderr string, err error) {
	t.Helper()
	c := v.command(t, args...)
	c.Dir = dir
	var b bytes.Buffer
	c.Stderr = &b
	err = c.Run()
	return b.String(), err
}

// TestJobsWorkSideBySide checks that parts of a model, two models, and two targets don't share a
// work folder. Two runs of one job do, and the second names the folder and says what to do.
func TestJobsWorkSideBySide(t *testing.T) {
	t.Parallel()
	for name, jobs := range map[string]struct {
		first, second []string
		locked        bool
	}{
		"parts":      {[]string{"--shard", "1/2"}, []string{"org/model", "--push", "--shard", "2/2"}, false},
		"models":     {nil, []string{"org/other", "--push"}, false},
		"targets":    {nil, []string{"org/model", "--push", "--repo-id", "tester/elsewhere"}, false},
		"same job":   {nil, []string{"org/model", "--push"}, true},
		"same shard": {[]string{"--shard", "1/2"}, []string{"org/model", "--push", "--shard", "1/2"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, 12)
			v.AddModel("org/other", hubtest.NewLlama(6, hubtest.ModelOptions{Layers: 3, Hidden: 16, Heads: 2, Vocab: 64}))
			v.args = jobs.first
			held := hubtest.Fault{Method: "POST", Path: "*/commit/*", Action: func(x *hubtest.Exchange) {
				stderr, err := v.another(t, "", jobs.second...)
				if !jobs.locked && err != nil {
					t.Errorf("the second job: %v\n%s", err, stderr)
				}
				if jobs.locked && (err == nil || !strings.Contains(stderr, "work folder "+v.home) || !strings.Contains(stderr, "hint: wait") ||
					!strings.Contains(stderr, "--work-dir") || strings.Contains(stderr, "output folder")) {
					t.Errorf("the same job again: %v\n%s", err, stderr)
				}
				x.Next(x.ResponseWriter)
			}}
			if err := v.run(t, 1, func(*os.Process) { v.Inject(held) }); err != nil {
				t.Fatalf("%v\n%s", err, &v.stderr)
			}
			if jobs.first != nil && !jobs.locked {
				v.args = []string{"--finish"}
				if err := v.run(t, 0, nil); err != nil {
					t.Fatalf("%v\n%s", err, &v.stderr)
				}
			}
		})
	}
}

// TestOutputInsideItsSource checks that an output folder of any name is no part of the source that
// contains it. So a second run has nothing to do, a killed run continues, and the result is that of
// a folder elsewhere.
func TestOutputInsideItsSource(t *testing.T) {
	t.Parallel()
	v := newVictim(t, 12)
	want := t.TempDir()
	source := filepath.Join(t.TempDir(), "model")
	world.Must(t, killModel(12).Write(source))
	if stderr, err := v.another(t, "", source, "-o", want); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for name, args := range map[string][]string{
		"model-DF11": {"."},
		"out":        {".", "-o", "out"},
		"deep/er":    {source, "-o", filepath.Join(source, "deep", "er")},
		"y":          {"../model", "-o", "./x/../y/"},
	} {
		out := filepath.Join(source, name)
		v.killAt(t, source, filepath.Join(out, "*.safetensors"), append(slices.Clone(args), "--workers", "1")...)
		world.Write(t, filepath.Join(out, ".df11-convert", ".df11-LEFTBYAKILLLEFTBYAKILLLEFT.tmp"), "half")
		for i, made := range []bool{true, false} {
			stderr, err := v.another(t, source, append(slices.Clone(args), "--verbose")...)
			if err != nil {
				t.Fatalf("%v, run %d after the kill: %v\n%s", args, i+1, err, stderr)
			}
			if again := strings.Contains(stderr, "output finished"); again && !made {
				t.Errorf("%v: a finished folder is made again\n%s", args, stderr)
			}
		}
		if report := must(t, source, "-o", out); !strings.Contains(report, "up to date") {
			t.Errorf("%v: the last run does not say that there was nothing to do:\n%s", args, report)
		}
		a, b := world.ReadAll(t, out), world.ReadAll(t, want)
		for _, files := range []map[string][]byte{a, b} {
			files[names.Manifest] = world.AsStreamed(files[names.Manifest])
		}
		if !maps.EqualFunc(a, b, bytes.Equal) {
			t.Errorf("%s holds %q, want %q", out, slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
		}
	}
	if listing := must(t, "plan", source); strings.Contains(listing, "DF11/") || strings.Contains(listing, "out/") {
		t.Errorf("plan counts results as parts of the source:\n%s", listing)
	}
}

// TestKilledDecode checks that the next run of decode continues a killed one, and leaves nothing of
// it behind.
func TestKilledDecode(t *testing.T) {
	t.Parallel()
	v := newVictim(t, 12)
	original, df11, out := filepath.Join(t.TempDir(), "model"), t.TempDir(), filepath.Join(t.TempDir(), "out")
	world.Must(t, killModel(12).Write(original))
	must(t, original, "-o", df11)
	for _, pattern := range []string{".df11-convert/.df11-*.tmp", "*.safetensors"} {
		v.killAt(t, "", filepath.Join(out, pattern), "decode", df11, "-o", out)
		world.Write(t, filepath.Join(out, ".df11-convert", ".df11-LEFTBYAKILLLEFTBYAKILLLEFT.tmp"), "half")
	}
	if stderr, err := v.another(t, "", "decode", df11, "-o", out); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	decoded, files := world.ReadAll(t, out), world.ReadAll(t, original)
	for name, b := range decoded {
		if !strings.HasSuffix(name, ".index.json") && !bytes.Equal(b, files[name]) {
			t.Errorf("%s differs", name)
		}
	}
	if len(decoded) < 3 {
		t.Errorf("%d files were decoded", len(decoded))
	}
}

// killAt runs the program and kills it as soon as a file that matches pattern exists, or at its end
// if that comes first.
func (v *victim) killAt(t *testing.T, dir, pattern string, args ...string) {
	t.Helper()
	c := v.command(t, args...)
	c.Dir = dir
	world.Must(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for len(ended) == 0 {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	_ = c.Process.Kill()
	if err := <-ended; err == nil {
		t.Logf("%v had ended before the kill", args)
	}
}
