package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestNext checks which step a front end can offer after an error.
func TestNext(t *testing.T) {
	asked := func(cause error, token string) error {
		return fmt.Errorf("plan: %w", &hub.Error{Err: cause, TokenSource: token, Repo: "a/b"})
	}
	for _, x := range []struct {
		err  error
		step string
	}{
		{asked(hub.ErrGated, ""), "sign_in"},
		{asked(hub.ErrGated, "HF_TOKEN"), "accept_terms"},
		{asked(hub.ErrNotFound, ""), "sign_in"}, // it may be private
		{asked(hub.ErrNotFound, "HF_TOKEN"), ""},
		{asked(hub.ErrUnauthorized, "HF_TOKEN"), "sign_in"},
		{asked(hub.ErrForbidden, "HF_TOKEN"), ""},
		{&hub.Error{Status: 503}, "retry"},
		{&hub.Error{Err: hub.ErrRateLimited, Attempts: 2}, "retry"},
		{&hub.Error{Err: hub.ErrCorrupt}, ""},
		{&plan.RefusedError{Next: "check_instead"}, "check_instead"},
		{pipeline.ErrNoOriginal, ""},
	} {
		if f := failureOf(x.err); f.Next != x.step {
			t.Errorf("%v: %q", x.err, f.Next)
		}
	}
}

// TestNamesTurnNothing checks that marks of text direction in names reach no reader of the
// document.
func TestNamesTurnNothing(t *testing.T) {
	f := failureOf(&plan.RefusedError{Detail: "a.\u202egnp is F16", Hint: hint.IndexOrSingle.With("file", "\u2066b")})
	if f.Message != `a.\u202egnp is F16` || !strings.HasSuffix(f.Hint, ` --file $'\xe2\x81\xa6b'`) {
		t.Errorf("%q, %q", f.Message, f.Hint)
	}
}

// TestPathsInPlainWords checks what is said about a path that can't be read or written, and that
// the system's words stay in the detail.
func TestPathsInPlainWords(t *testing.T) {
	t.Chdir(t.TempDir())
	world.Must(t, os.WriteFile("file", nil, 0o600))
	_, none := os.ReadFile("none")
	for _, c := range []struct {
		err  error
		want string
	}{
		{none, "none: no such file or folder"},
		{&fs.PathError{Op: "read", Path: "folder", Err: syscall.EISDIR}, "folder: it's a folder, not a file"},
		{&fs.PathError{Op: "open", Path: "file/x", Err: syscall.ENOTDIR}, "file/x: the path leads through a file"},
		{os.MkdirAll("file", 0o700), "file: it's a file, not a folder"},
		{os.MkdirAll("file/x", 0o700), "file: it's a file, not a folder"},
		{os.Mkdir("none/x", 0o700), "none/x: the folder for it doesn't exist"},
		{fmt.Errorf("pattern dict: %w", none), "pattern dict: none: no such file or folder"},
		{&disk.Error{Kind: disk.Output, Folder: "file", Err: os.MkdirAll("file", 0o700)}, "output folder file: it's a file, not a folder"},
		{&fs.PathError{Op: "write", Path: "file", Err: errors.New("no space left")}, "write file: no space left"},
	} {
		f := failureOf(c.err)
		if f.Message != c.want {
			t.Errorf("%v: %q, want %q", c.err, f.Message, c.want)
		}
		if f.Detail != c.err.Error() && f.Message != c.err.Error() {
			t.Errorf("%v: the detail is %q", c.err, f.Detail)
		}
	}
}
