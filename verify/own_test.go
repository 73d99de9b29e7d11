package verify_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestSharesNoCodeWithTheEncoder checks that the code that compares imports nothing of this module
// but what lies below it: neither the encoder nor anything that both could have a fault from. The
// encoder imports nothing of this module at all.
func TestSharesNoCodeWithTheEncoder(t *testing.T) {
	const module = "github.com/df11-convert/df11-convert/"
	for _, p := range []struct {
		name, below string
	}{{"verify", "verify/"}, {"encoder", "encoder/"}} {
		out, err := exec.Command("go", "list", "-deps", module+p.name).Output()
		if err != nil {
			t.Fatal(err)
		}
		deps := strings.Fields(string(out))
		if !slices.Contains(deps, module+p.name) {
			t.Fatalf("%s depends on %q", p.name, deps)
		}
		for _, d := range deps {
			if own, ok := strings.CutPrefix(d, module); ok && own != p.name && !strings.HasPrefix(own, p.below) {
				t.Errorf("%s imports %s", p.name, own)
			}
		}
	}
}
