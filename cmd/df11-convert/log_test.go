package main

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
)

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
