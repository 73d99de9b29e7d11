package main

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestReasons: plan and report say in words why a unit stays in BF16.
func TestReasons(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := world.NewCheckpoint(1)
	for _, b := range []string{"model.layers.0.", "model.layers.1."} {
		c.Add(b+"mlp.up_proj.weight", "BF16", 0, 32, 32)
	}
	for i := range c.Tensors[1].Data {
		c.Tensors[1].Data[i] = 0x3f // one exponent in all weights
	}
	world.Write(t, filepath.Join(dir, "model.safetensors"), c.File())
	world.Write(t, filepath.Join(dir, "config.json"), []byte(`{"model_type": "new"}`))
	for _, args := range [][]string{{"plan", dir}, {dir, "-o", filepath.Join(dir, "out")}} {
		if out := must(t, args...); !strings.Contains(out, "it has too few different exponents") || strings.Contains(out, "official_crash") {
			t.Errorf("%v prints\n%s", args, out)
		}
	}
}

// TestResumeNamesTheRunsOwnArguments: the command that continues is the command that was run, not that
// of the process.
func TestResumeNamesTheRunsOwnArguments(t *testing.T) {
	for _, args := range [][]string{{"./none", "-o", "a b"}, {"batch", "./none.yaml", "--push"}} {
		u := newUI(os.Stdout, os.Stderr)
		if err := rootCommand(u, args).ExecuteContext(t.Context()); err == nil {
			t.Fatal("it ran")
		}
		if want := resumeCommand(args); u.resume != want {
			t.Errorf("got %q, want %q", u.resume, want)
		}
	}
}

// TestPeople: a warning is one sentence; what is less than a warning is not shown.
func TestPeople(t *testing.T) {
	var b bytes.Buffer
	l := slog.New(people{w: &b, level: slog.LevelWarn}).With("file", "a.safetensors").WithGroup("g")
	l.Info("not shown")
	l.Warn("read again", "err", errors.New("wrong sum"), "n", 3)
	l.Error("gone")
	const want = "warning: read again: a.safetensors: wrong sum: 3\nerror: gone: a.safetensors\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestFullDiskNamesNoFlag: a report page or a folder of decode can fill a disk as well, and its
// command has other flags than a conversion.
func TestFullDiskNamesNoFlag(t *testing.T) {
	h := hint(&fs.PathError{Op: "write", Path: "report.html", Err: syscall.ENOSPC})
	if h == "" || strings.Contains(h, "-o") || strings.Contains(h, "saved") {
		t.Errorf("hint %q", h)
	}
}

// TestWaitsAreAddedUp: the report's time says how long nothing moved because of the Hub, however
// many transfers waited at once.
func TestWaitsAreAddedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w waits
		for _, wait := range []struct{ after, lasts time.Duration }{{0, 10}, {4, 8}, {1, 1}, {20, 3}} {
			time.Sleep(wait.after * time.Second)
			w.add(wait.lasts * time.Second)
		}
		if text := stageTimes(pipeline.Made{Seconds: 31}, w.sum); text != "31.0 s (15 s waiting for the Hub)" {
			t.Error(text)
		}
	})
}
