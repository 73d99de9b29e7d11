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
func (h Hint) Is(text string) bool { return h.facts(text) != nil }

// facts returns the facts of a text, as With takes them, or nil if it isn't that of the row.
func (h Hint) facts(text string) []string {
	pattern := regexp.MustCompile(`(?s)^` +
		fact.ReplaceAllString(regexp.QuoteMeta(h.text), "(.+)") + `$`)
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	list := []string{}
	for i, name := range fact.FindAllStringSubmatch(regexp.QuoteMeta(h.text), -1) {
		list = append(list, name[1], found[i+1])
	}
	return list
}

// fact matches a word in braces, in a quoted pattern.
var fact = regexp.MustCompile(`\\\{(\w+)\\\}`)

// ForList returns what to say about a list's model instead of a hint's text. A list has no flags
// for one model: its entries have members instead.
func ForList(text string) string {
	best, most := text, -1 // the row with most of the text
	for _, h := range forLists {
		fixed := len(fact.ReplaceAllString(regexp.QuoteMeta(h.one.text), ""))
		if facts := h.one.facts(text); facts != nil && fixed > most {
			best, most = h.list.With(facts...).text, fixed
		}
	}
	return best
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
