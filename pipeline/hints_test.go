package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubrules"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestHintsOfErrors checks the hints of errors that no test of the command line can bring about: a
// full disk, another program, a network that damages files.
func TestHintsOfErrors(t *testing.T) {
	limited := new(Means).ended(t.Context(), &budget.MemoryError{})
	huge, _ := hubrules.CheckFiles([]hubrules.File{{Path: "a", Size: hubrules.FileBytes + 1}})
	many, _ := hubrules.CheckFiles(make([]hubrules.File, hubrules.FolderFiles+1))
	dir := t.TempDir()
	world.Write(t, filepath.Join(dir, ".df11-convert", "part-1-of-1.json"), "")
	for _, c := range []struct {
		err  error
		want hint.Hint
	}{
		{&fs.PathError{Err: syscall.ENOSPC}, hint.DiskFull},
		{&fs.PathError{Err: syscall.EMFILE}, hint.OpenFiles},
		{&disk.Error{Kind: disk.Output, Err: &fs.PathError{Err: syscall.EMFILE}}, hint.OpenFiles},
		{&hub.Error{Err: &net.OpError{Err: os.NewSyscallError("socket", syscall.EMFILE)}}, hint.OpenFiles},
		{&fs.PathError{Err: syscall.EFBIG}, hint.FileSize},
		{&fs.PathError{Err: syscall.EACCES}, hint.PathForbidden},
		{&fs.PathError{Err: syscall.ENOENT}, hint.Path},
		{disk.Regular("x", fs.ModeNamedPipe), hint.NotFile},
		{&budget.DiskError{Folder: "x"}, hint.DiskFolder},
		{limited, hint.MemoryLimit},
		{(&Means{Memory: 1}).ended(t.Context(), &budget.MemoryError{}), hint.MemoryBudget},
		{&publish.TakenError{}, hint.Taken},
		{&publish.LostError{Where: "a/b"}, hint.Lost},
		{&hub.WitnessError{Repo: "a/b"}, hint.Witness},
		{&model.ChangedError{}, hint.SourceChanged},
		{&model.SourceError{}, hint.SourceCorrupt},
		{&back.LeftOutError{}, hint.LeftOut},
		{model.ErrRemoteWeights, hint.ArrangedHere},
		{&hub.Error{Repo: "a/b", Err: hub.ErrConflict}, hint.BranchMoved},
		{unfinished(dir), hint.Unfinished},
		{&spans.UnaccountedError{}, hint.Unaccounted},
		{&convert.LimitError{Problem: huge[0]}, hint.LargeFile},
		{&convert.LimitError{Problem: many[0]}, hint.ManyFiles},
	} {
		e := ErrorOf(fmt.Errorf("wrapped: %w", c.err))
		if got := e.Hint; !c.want.Is(got) || strings.Contains(got, "{") {
			t.Errorf("%T: %s", c.err, got)
		}
		if in := hint.Of(e); in.String() != e.Hint || in.ForList().Cause != c.want.ForList().Cause {
			t.Errorf("%T: in a list %s", c.err, in.ForList())
		}
	}
}

// TestFolderHints checks that only a locked folder's hint says to wait, and that each names the
// flag of its folder.
func TestFolderHints(t *testing.T) {
	for err, want := range map[error]hint.Hint{
		disk.ErrLocked: hint.FolderLocked, &disk.UnsafeError{Path: "a b", Chmod: "+t"}: hint.FolderAbove,
		&disk.UnsafeError{Chmod: "go-w"}: hint.FolderShared, &disk.UnsafeError{}: hint.FolderUnsafe,
		&fs.PathError{Err: syscall.EROFS}: hint.FolderReadOnly, &fs.PathError{Err: syscall.EACCES}: hint.FolderForbidden,
		&fs.PathError{Err: syscall.ENOTDIR}: hint.FolderIsFile, fs.ErrInvalid: hint.Folder,
	} {
		for kind, flag := range map[string]string{disk.Output: "-o", disk.Work: "--work-dir"} {
			got := ErrorOf(&disk.Error{Kind: kind, Folder: "x", Err: err}).Hint
			if !want.Is(got) || !strings.Contains(got, flag) || strings.Contains(got, "wait") != errors.Is(err, disk.ErrLocked) {
				t.Errorf("%s, %v: %s", kind, err, got)
			}
		}
	}
}
