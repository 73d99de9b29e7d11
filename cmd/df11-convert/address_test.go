package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/df11-convert/df11-convert/internal/address"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestAddresses checks that what people write and paste is taken for the model that it names. The
// page passes on what it's given, so the same table holds there.
func TestAddresses(t *testing.T) {
	t.Setenv("HF_ENDPOINT", "http://mirror:8080")
	b, err := os.ReadFile("testdata/addresses.json")
	world.Must(t, err)
	var cases []struct{ Text, Repo, Revision, File, Error string }
	world.Must(t, json.Unmarshal(b, &cases))
	if len(cases) < 30 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		got, err := address.Parse(c.Text)
		if want := (address.Address{Repo: c.Repo, Revision: c.Revision, File: c.File}); got != want {
			t.Errorf("%q names %+v (%v), want %+v", c.Text, got, err, want)
		}
		if again, err2 := address.Parse(got.String()); err == nil && (again != got || err2 != nil) {
			t.Errorf("%q becomes %q, which names %+v (%v)", c.Text, got, again, err2)
		}
		switch {
		case err == nil && c.Error != "":
			t.Errorf("%q is taken, want the error: %s", c.Text, c.Error)
		case err != nil && (err.Error() != c.Error || hintOf(err).String() == ""):
			t.Errorf("%q: %v (hint: %q), want %s", c.Text, err, hintOf(err), c.Error)
		}
	}
}
