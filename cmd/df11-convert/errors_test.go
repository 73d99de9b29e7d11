package main

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/pipeline"
)

// TestStrictIsNamedOnlyWhereItWasGiven: a model of which DF11 can hold no module fails without --strict too; then no hint speaks of
// leaving it out.
func TestStrictIsNamedOnlyWhereItWasGiven(t *testing.T) {
	units := []ledger.Unit{{Path: "lm_head", Reason: "exponent_range"}}
	for _, all := range []bool{false, true} {
		given := hints(&pipeline.StrictError{Units: units, All: all})
		if named := slices.ContainsFunc(given, func(h string) bool { return strings.Contains(h, "--strict") }); named == all || len(given) != 1 {
			t.Errorf("all modules %v: %q", all, given)
		}
	}
}

// TestFullDiskNamesNoFlag: a report page or a folder of decode can fill a disk as well, and its command has other flags than
// a conversion.
func TestFullDiskNamesNoFlag(t *testing.T) {
	hs := hints(&fs.PathError{Op: "write", Path: "report.html", Err: syscall.ENOSPC})
	if len(hs) != 1 || strings.Contains(hs[0], "-o") || strings.Contains(hs[0], "saved") {
		t.Errorf("hints %q", hs)
	}
}
