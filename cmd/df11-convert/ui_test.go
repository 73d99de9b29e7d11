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

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestReasons checks that plan and report say why a unit stays BF16.
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

// TestResumeNamesTheRunsOwnArguments checks that the command that resumes is that of the run, not
// that of the process.
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

// TestPeople checks that the log for people writes a warning as one sentence, and nothing below
// that level.
func TestPeople(t *testing.T) {
	var b bytes.Buffer
	warnings := &slog.HandlerOptions{Level: slog.LevelWarn}
	l := slog.New(people{slog.NewTextHandler(&b, warnings), &b})
	l.Info("not shown")
	l.Warn("read again", "err", errors.New("wrong sum"), "n", 3)
	l.Error("gone")
	const want = "warning: read again: wrong sum: 3\nerror: gone\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestFullDiskNamesNoFlag checks the hint about a disk that the page of inspect or a folder of
// decode fills. Those commands have other flags than a conversion.
func TestFullDiskNamesNoFlag(t *testing.T) {
	h := hint(&fs.PathError{Op: "write", Path: "report.html", Err: syscall.ENOSPC})
	if h == "" || strings.Contains(h, "-o") || strings.Contains(h, "saved") {
		t.Errorf("hint %q", h)
	}
}
