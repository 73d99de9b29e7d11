// Package hint has the one table from the cause of an error to what the user can do about it
// (table.go). The package that knows a cause names its row, with the facts that the text mentions; no
// other package has texts of hints. It makes no errors, and knows no flags.
//
// To add a hint, add a row to the table, and a row to mishaps in cmd/df11-convert, which follows it:
// TestHintsHelp fails for a row that no test follows.
package hint

import (
	"regexp"
	"strings"
)

// A Hint is what the user can do about one cause. The zero Hint says nothing.
type Hint struct {
	Cause string // the row's name
	text  string
}

var rows []Hint

// row adds a row to the table. Words in braces are facts, which [Hint.With] fills in.
func row(cause, text string) Hint {
	h := Hint{cause, text}
	rows = append(rows, h)
	return h
}

// All returns the rows of the table.
func All() []Hint { return rows }

// With returns the hint with facts: the names in braces, each followed by its value.
func (h Hint) With(facts ...string) Hint {
	for i := 0; i < len(facts); i += 2 {
		h.text = strings.ReplaceAll(h.text, "{"+facts[i]+"}", facts[i+1])
	}
	return h
}

// String returns the text.
func (h Hint) String() string { return h.text }

// Is reports whether a text is that of the row, with any facts.
func (h Hint) Is(text string) bool {
	return regexp.MustCompile(`(?s)^` +
		regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(h.text), ".+") +
		`$`).MatchString(text)
}

// hinted is an error with a hint of its own.
type hinted struct {
	error
	hint Hint
}

func (h hinted) Unwrap() error { return h.error }
func (h hinted) Hint() Hint    { return h.hint }

// On adds to an error what the user can do about it. It counts before the hints of what the error
// wraps.
func On(err error, h Hint) error { return hinted{err, h} }

// Of returns the hint of an error, or of what it wraps: the outermost that says something.
func Of(err error) Hint {
	if is, ok := err.(interface{ Hint() Hint }); ok { //nolint:errorlint // walks the chain itself
		if h := is.Hint(); h.text != "" {
			return h
		}
	}
	switch w := err.(type) { //nolint:errorlint // walks the chain itself
	case interface{ Unwrap() error }:
		return Of(w.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range w.Unwrap() {
			if h := Of(one); h.text != "" {
				return h
			}
		}
	}
	return Hint{}
}

// MarshalText returns the text.
func (h Hint) MarshalText() ([]byte, error) { return []byte(h.text), nil }

// UnmarshalText reads the text of an entry of the catalog.
func (h *Hint) UnmarshalText(text []byte) error {
	*h = Entry.With("text", string(text))
	return nil
}
