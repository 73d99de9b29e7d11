package wire

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// speakForThemselves are the causes for which there is no step to give that the error does not say.
var speakForThemselves = []error{ErrEntryNotFound, ErrTooLarge, ErrUnsafePath, ErrInvalidCard, errLocalBody, ErrBadURL}

// causes are all sentinels that people may see, by the names that TestNoCauseIsWithoutAHint finds
// in the source.
var causes = map[string]error{
	"ErrNotFound": ErrNotFound, "ErrRevisionNotFound": ErrRevisionNotFound, "ErrEntryNotFound": ErrEntryNotFound,
	"ErrUnauthorized": ErrUnauthorized, "ErrGated": ErrGated, "ErrForbidden": ErrForbidden, "ErrDisabled": ErrDisabled,
	"ErrQuota": ErrQuota, "ErrRateLimited": ErrRateLimited, "ErrOffline": ErrOffline, "ErrChanged": ErrChanged,
	"ErrCorrupt": ErrCorrupt, "ErrTooLarge": ErrTooLarge, "ErrConflict": ErrConflict, "ErrMissingObject": ErrMissingObject,
	"ErrUnsafePath": ErrUnsafePath, "ErrNotHub": ErrNotHub,
	"ErrStalled": ErrStalled, "ErrInvalidCard": ErrInvalidCard, "ErrTrustedPublisher": ErrTrustedPublisher,
	"ErrExpired": ErrExpired, "ErrBadRange": ErrBadRange, "ErrBusy": ErrBusy, "ErrStale": ErrStale,
	"ErrNoRoute": ErrNoRoute, "ErrInsists": ErrInsists, "errLocalBody": errLocalBody, "ErrBadURL": ErrBadURL, "ErrNoETag": ErrNoETag, "errNoConnection": errNoConnection, "errNoAnswer": errNoAnswer, "errProxy": errProxy,
}

// inside are causes that no caller sees.
var inside = []string{"errClosed", "ErrLagging"}

// TestNoCauseIsWithoutAHint checks that users get a next step for every failure. It reads the
// source, so that no one can forget a new sentinel.
func TestNoCauseIsWithoutAHint(t *testing.T) {
	names := sentinels(t)
	if len(names) < 20 {
		t.Fatalf("only %v are found", names)
	}
	for _, name := range names {
		if slices.Contains(inside, name) {
			continue
		}
		cause, known := causes[name]
		if !known {
			t.Errorf("%s: add it to the causes of this test, and give it a hint", name)
			continue
		}
		if !slices.Contains(speakForThemselves, cause) && Hint(&Error{Op: "x", Err: cause}) == "" {
			t.Errorf("%s has no hint", name)
		}
	}
}

// sentinels returns the variables of this package and of hub that are made from a text.
func sentinels(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	above, err2 := filepath.Glob("../../*.go")
	if errors.Join(err, err2) != nil || len(above) == 0 {
		t.Fatal(err, err2)
	}
	for _, name := range append(files, above...) {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			for _, found := range madeOfText.FindAllSubmatch(source, -1) {
				names = append(names, string(found[1]))
			}
		}
	}
	return names
}

// madeOfText matches a variable made from a text.
var madeOfText = regexp.MustCompile(`(?m)^(?:var |\t)(\w+)\s+= (?:errors\.New|lasting|passing)\(`)
