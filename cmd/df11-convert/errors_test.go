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
	hs := hints(&fs.PathError{Op: "write", Path: "report.html", Err: syscall.ENOSPC})
	if len(hs) != 1 || strings.Contains(hs[0], "-o") || strings.Contains(hs[0], "saved") {
		t.Errorf("hints %q", hs)
	}
}
