package main

import (
	"slices"
	"strings"
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
