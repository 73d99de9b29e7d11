//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestPipesEndWithTheRun checks that a run doesn't wait for the writer of a pipe once it is
// interrupted, and refuses a pipe where it needs a file.
func TestPipesEndWithTheRun(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.safetensors")
	world.Must(t, syscall.Mkfifo(pipe, 0o600))
	model := filepath.Join(dir, "m")
	world.Must(t, smallModel(1).Write(model))
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	for command, want := range map[string]int{
		"batch PIPE": exitInterrupted, "status PIPE": exitInterrupted, "plan MODEL --pattern-dict PIPE": exitInterrupted,
		"kernel PIPE": exitError, "kernel --install PIPE": exitError, "weights PIPE": exitError, "plan PIPE": exitError,
		"inspect PIPE": exitError, "verify PIPE": exitError, "decode PIPE": exitError,
	} {
		ctx := interrupted
		if want != exitInterrupted {
			ctx = t.Context()
		}
		u, read := captured(t)
		args := strings.Fields(strings.NewReplacer("PIPE", pipe, "MODEL", model).Replace(command))
		code := execute(ctx, u, args)
		_, stderr := read()
		if code != want || want == exitError && !strings.Contains(stderr, "it isn't a regular file") {
			t.Errorf("%s: exit %d: %s", command, code, stderr)
		}
	}
}

// TestDictFromAPipe checks that a pattern dict may come from a command, as in bash's <(...), which
// can be read once.
func TestDictFromAPipe(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "m")
	world.Must(t, smallModel(1).Write(model))
	var planned struct {
		Dict json.RawMessage `json:"pattern_dict"`
	}
	world.Must(t, json.Unmarshal([]byte(must(t, "plan", model, "--json")), &planned))
	for _, args := range [][]string{{"plan", model}, {model, "-o", filepath.Join(dir, "out")}} {
		r, w, err := os.Pipe()
		world.Must(t, err)
		_, err = w.Write(planned.Dict)
		world.Must(t, errors.Join(err, w.Close()))
		must(t, append(args, "--pattern-dict", fmt.Sprintf("/dev/fd/%d", r.Fd()))...)
		world.Must(t, r.Close())
	}
}
