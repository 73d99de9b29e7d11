package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

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

// TestResumeAfterAnError checks that an error that the same command gets over is followed by that
// command, quoted, and by how much is saved, and that no other error is.
func TestResumeAfterAnError(t *testing.T) {
	const all = 3
	for _, args := range [][]string{{"org/model", "-o", "it's a \"b\"", "--push", "--include=*.txt"}, {"batch", "my list.yaml", "--push"}} {
		for _, c := range []struct {
			err      error
			finished int64
			want     string // before the command; "" if there is none
		}{
			{errInterrupted, 0, "this run has saved nothing"}, {errInterrupted, 1, "1 of 3 weight files saved in the folder"},
			{&hub.Error{Status: 503}, 0, "this run has saved nothing"}, {&hub.Error{Err: hub.ErrRateLimited}, 2, "2 of 3 weight files saved in the folder"},
			{&hub.Error{Err: hub.ErrUnauthorized}, 0, ""}, {&hub.Error{Err: hub.ErrUnauthorized}, 1, "1 of 3 weight files saved in the folder"},
			{&hub.Error{Err: hub.ErrQuota}, 0, ""}, {&hub.Error{Err: hub.ErrQuota}, all, "3 weight files saved in the folder, but the files next to them aren't complete"},
			{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, 1, "1 of 3 weight files saved in the folder"},
			{&plan.RefusedError{Detail: "F16"}, 1, ""}, {&budget.DiskError{}, 1, ""}, {usagef("x"), 1, ""}, {errors.New("x"), 1, ""},
		} {
			u := newUI(os.Stdout, os.Stderr)
			u.resume, u.now = resumeCommand(args), work{finished: c.finished, files: all}
			got := u.failure(c.err).Hint
			if named := strings.Contains(got, "resume with: "); named != (c.want != "") {
				t.Errorf("%v after %d files: %s", c.err, c.finished, got)
			} else if named && !strings.HasSuffix(got, c.want+"; resume with: "+u.resume) {
				t.Errorf("%v after %d files: %s, want %s", c.err, c.finished, got, c.want)
			}
		}
	}
}

// TestAStopThatComesTooLate checks that a run that has done everything ends well, also if a signal
// comes before it has printed that.
func TestAStopThatComesTooLate(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errInterrupted)
	if code := newUI(os.Stdout, os.Stderr).report(ctx, nil); code != exitOK {
		t.Errorf("exit %d", code)
	}
	folder := filepath.Join(t.TempDir(), "out")
	model := t.TempDir()
	world.WriteAll(t, model, hubtest.NewLlama(1, hubtest.ModelOptions{Layers: 1}).Files())
	ctx, stop = context.WithCancelCause(t.Context())
	report, err := pipeline.Convert(ctx, model, pipeline.Options{Folder: folder,
		Means: pipeline.Means{Progress: func(p pipeline.Progress) {
			if p.Ended {
				stop(errInterrupted)
			}
		}}})
	if err != nil || ctx.Err() == nil || report.Target.Folder != folder {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestAStoppedListCountsOneModel checks that what a list says when it's stopped is about the model
// whose turn it was, not about the models before.
func TestAStoppedListCountsOneModel(t *testing.T) {
	u := newUI(os.Stdout, os.Stderr)
	u.resume, u.list = "df11-convert batch list.yaml --push", true
	stopped := func(want string) {
		t.Helper()
		if got := u.failure(errInterrupted).Hint; got != want+"resume with: "+u.resume {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	at := func(files, published int64) {
		u.count(pipeline.Progress{Ended: true, Files: files, FilesPublished: published, FilesTotal: 5,
			Stages: []pipeline.StageProgress{{Stage: "upload"}}})
	}
	stopped("")
	u.now = work{model: "org/a"}
	at(5, 5)
	stopped("org/a: 5 weight files published, but maybe not the files next to them; ")
	u.now = work{model: "org/b"}
	stopped("org/b: this run has saved nothing; ")
	at(2, 1)
	stopped("org/b: 2 of 5 weight files saved, at least 1 of them published; ")
}

// TestPeople checks that the log for people writes a warning as one sentence, and nothing below
// that level.
func TestPeople(t *testing.T) {
	var b bytes.Buffer
	warnings := &slog.HandlerOptions{Level: slog.LevelWarn}
	l := slog.New(people{slog.NewTextHandler(&b, warnings), &b})
	l.Info("not shown")
	l.Warn("read again", "err", errors.New("wrong sum"), "n", 3)
	const want = "warning: read again: wrong sum: 3\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestColumnsHold checks that no text in a cell moves the columns of a table.
func TestColumnsHold(t *testing.T) {
	for _, odd := range []string{"a\xffb", "\xff", "a\xff\xffb\xff", "a\vb", "a\fb", "a\tb", "a\nb", "\x1b[2J", "ok"} {
		var b strings.Builder
		rows := rows{names: []string{"name", "size"}}
		rows.add("first", "1 GB")
		rows.add(odd, "2 GB")
		rows.add("the last row", "3 GB")
		rows.print(&b, 0)
		two := newTable(&b)
		two.row("before", "4 GB")
		two.row("name", "%s, 5 GB", odd)
		two.row("longer than all", "6 GB")
		two.Flush()
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != 7 {
			t.Fatalf("%q: %q", odd, b.String())
		}
		for i, line := range lines {
			at, want := strings.Index(line, "  "), strings.Index(lines[3], "3 GB")
			if i > 3 {
				want = strings.Index(lines[6], "6 GB")
			}
			if rest := strings.TrimLeft(line[at:], " "); len(line)-len(rest) != want {
				t.Errorf("%q: %q doesn't begin its last column at %d", odd, line, want)
			}
		}
	}
}
