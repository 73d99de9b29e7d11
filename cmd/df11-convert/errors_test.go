package main

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// TestFullDiskNamesNoFlag: a report page or a folder of decode can fill a disk as well, and its command has other flags than
// a conversion.
func TestFullDiskNamesNoFlag(t *testing.T) {
	h := hint(&fs.PathError{Op: "write", Path: "report.html", Err: syscall.ENOSPC})
	if h == "" || strings.Contains(h, "-o") || strings.Contains(h, "saved") {
		t.Errorf("hint %q", h)
	}
}
