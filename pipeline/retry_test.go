package pipeline

import (
	"errors"
	"os"
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/target"
)

// TestDiscardTakesWhatTheFileMade: of the outputs that hold bytes of a broken source file, those go, ledger and file, whose bytes are
// bound to it by a hash, or that this run has made of ranges and nothing else; all of them if a proof has failed.
func TestDiscardTakesWhatTheFileMade(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		prefixes []ledger.Prefix
		earlier  bool
		cause    error
		goes     bool
	}{
		"bound to it":                {[]ledger.Prefix{{File: "f"}}, false, broken, true},
		"bound to it, earlier":       {[]ledger.Prefix{{File: "f"}}, true, broken, true},
		"by ranges":                  {nil, false, broken, true},
		"by ranges, earlier":         {nil, true, broken, false},
		"partly bound to another":    {[]ledger.Prefix{{File: "g"}}, false, broken, false},
		"by ranges, proof fails":     {nil, true, &ProofError{"f", broken}, true},
		"bound to another, it fails": {[]ledger.Prefix{{File: "g"}}, true, &ProofError{"f", broken}, true},
	} {
		a := twoTensors()
		folder, err := target.OpenFolder(t.Context(), t.TempDir(), true, target.NewOwner(&plan.Plan{}, "", false), "part", &plan.Plan{})
		must(t, err)
		a.folder, a.earlier = folder, map[string]bool{"o": c.earlier}
		must(t, os.WriteFile(folder.Path("o"), nil, 0o666))
		must(t, a.ledger.Add(ledger.Output{Path: "o", Prefixes: c.prefixes, Place: ledger.Place{Here: true}}))
		must(t, newRetry(a.conversion).discard("f", c.cause))
		_, err = os.Stat(folder.Path("o"))
		if a.ledger.Done("o") == c.goes || (err == nil) == c.goes {
			t.Errorf("%s: done is %t, and the file: %v", name, a.ledger.Done("o"), err)
		}
		must(t, folder.Close(true))
	}
}
