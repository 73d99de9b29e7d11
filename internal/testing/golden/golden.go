// Package golden loads the vectors of testdata/golden for the tests of several packages. It checks
// nothing, and only tests import it.
package golden

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// Read reads a file of the vectors. path holds the parts of its path.
func Read(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir(t), filepath.Join(path...)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Case decodes a set's case.json.
func Case(t testing.TB, set string, into any) {
	t.Helper()
	if err := json.Unmarshal(Read(t, set, "case.json"), into); err != nil {
		t.Fatal(err)
	}
}

// dir finds the vectors, whichever folder of the module a test runs in.
func dir(t testing.TB) string {
	t.Helper()
	for up := "."; len(up) < 64; up = filepath.Join("..", up) {
		d := filepath.Join(up, "testdata", "golden")
		if _, err := os.Stat(d); err == nil {
			return d
		}
	}
	t.Fatal("no folder above holds testdata/golden")
	return ""
}

// A Unit is one unit as the official functions encoded it, with its input.
type Unit struct {
	plain.Unit
	Name     string
	Problems []string // limits of DF11 that the unit breaks
}

// Sound reports whether DF11 can hold the unit.
func (u Unit) Sound() bool { return u.LUTs != nil && len(u.Problems) == 0 }

// Units loads every unit with a stored input, by name.
func Units(t testing.TB) (units []Unit) {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join(dir(t), "*", "sign_mantissa.u8"))
	if err != nil || len(inputs) < 30 {
		t.Fatalf("%d golden units: %v", len(inputs), err)
	}
	for _, p := range inputs {
		units = append(units, Load(t, filepath.Base(filepath.Dir(p))))
	}
	return units
}

// Load loads one of the units.
func Load(t testing.TB, name string) Unit {
	t.Helper()
	var c struct {
		Tensors  []struct{ Numel int64 }
		Official struct{ Result string }
		Kernel   struct{ Problems []string }
	}
	Case(t, name, &c)
	u := Unit{
		Name: name, Problems: c.Kernel.Problems,
	}
	u.Unit = plain.Unit{
		Input:           Read(t, name, "input.bf16"),
		EncodedExponent: Read(t, name, "encoded_exponent.u8"),
		SignMantissa:    Read(t, name, "sign_mantissa.u8"),
		OutputPositions: Read(t, name, "output_positions.u32"), Gaps: Read(t, name, "gaps.u8"),
		SplitPositions: Read(t, name, "split_positions.i64"),
	}
	if c.Official.Result == "ok" {
		u.LUTs = Read(t, name, "luts.u8")
	}
	for _, x := range c.Tensors {
		u.Sizes = append(u.Sizes, x.Numel)
	}
	return u
}
