package pipeline

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/disk"
)

// TestFolderHints checks that only a locked folder's hint says to wait, and that each names the flag
// of its folder.
func TestFolderHints(t *testing.T) {
	for _, err := range []error{disk.ErrLocked, &disk.UnsafeError{Path: "a b", Chmod: "+t"},
		&disk.UnsafeError{Chmod: "go-w"}, &disk.UnsafeError{}, &fs.PathError{Err: syscall.EROFS},
		&fs.PathError{Err: syscall.EACCES}, &fs.PathError{Err: syscall.ENOTDIR}, fs.ErrInvalid} {
		for kind, flag := range map[string]string{disk.Output: "-o", disk.Work: "--work-dir"} {
			hint := ErrorOf(&disk.Error{Kind: kind, Folder: "x", Err: err}).Hint
			if !strings.Contains(hint, flag) || strings.Contains(hint, "wait") != errors.Is(err, disk.ErrLocked) {
				t.Errorf("%s, %v: %s", kind, err, hint)
			}
		}
	}
}
