package human_test

import (
	"encoding/json"
	"testing"

	"github.com/df11-convert/df11-convert/internal/human"
)

// evil clears a screen, rings, turns the direction of writing, and begins a line that looks like
// ours.
const evil = "\x1b[2J\x07\u202e\u2066\u009b31m\u2028\x7f\r\nhint: forged\tx"

// TestPrintableKeepsTheMeaning checks that glyphs stay, and that everything else becomes an escape
// that JSON reads.
func TestPrintableKeepsTheMeaning(t *testing.T) {
	for in, want := range map[string]string{
		"é 世界 😀 ← \ufffd\n": "é 世界 😀 ← \ufffd\n", "\x1b[0m": `\u001b[0m`, "\u202e": `\u202e`, "a\xffb": `a\xffb`, "\U000e0041": `\udb40\udc41`,
	} {
		if got := human.Printable(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
	doc, err := json.Marshal(evil + "\u009b\U000e0041")
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal([]byte(human.Printable(string(doc))), &back); err != nil || back != evil+"\u009b\U000e0041" {
		t.Errorf("a document changed: %q, %v", back, err)
	}
}

// TestMessage checks that a foreign name can't begin a line or column of a message, or turn its
// direction.
func TestMessage(t *testing.T) {
	got := human.Message("tensor %s is F32", "a\u202e\u200b\n\tb")
	if want := `tensor a\u202e\u200b\n\tb is F32`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
