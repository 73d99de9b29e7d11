// Package hint has the one table from the cause of an error to what the user can do about it
// (table.go). The package that knows a cause names its row, with the facts that the text mentions;
// no other package has texts of hints. The texts name the flags of the command, whose users are
// most of those who read them. Errors carry hints as values, so that a list can say something else
// without reading texts again.
//
// To add a hint, add a row to the table, and a row to mishaps in cmd/df11-convert, which follows
// it: TestHintsHelp fails for a row that no test follows.
package hint

import (
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// A Hint is what the user can do about one cause. The zero Hint says nothing.
type Hint struct {
	Cause string // the row's name
	text  string
	less  string // texts for commands that lack a flag of text, each behind a zero byte
	list  listed // takes the row's place in a list
}

// listed is the row that takes another's place in a list, or zero for none.
type listed struct{ cause, text string }

var rows []Hint

// row adds a row to the table. Words in braces are facts, which [Hint.With] fills in. A command
// that lacks a flag of text says the first of less whose flags it has.
func row(cause, text string, less ...string) Hint { return rowOr(cause, text, Hint{}, less...) }

// rowOr is row for what can't be followed in a list, because it names flags of a single model: a
// list has none, its entries have members instead. So inList takes the row's place there.
func rowOr(cause, text string, inList Hint, less ...string) Hint {
	h := Hint{Cause: cause, text: text, list: listed{inList.Cause, inList.text}}
	for _, other := range less {
		h.less += "\x00" + other
	}
	rows = append(rows, h)
	return h
}

// All returns the rows of the table.
func All() []Hint { return rows }

// With returns the hint with facts: the names in braces, each followed by its value. Behind a $, as
// in {$folder}, the value is quoted as a word of a command line.
func (h Hint) With(facts ...string) Hint {
	var pairs []string
	for i := 0; i < len(facts); i += 2 {
		name, value := facts[i], facts[i+1]
		pairs = append(pairs, "{"+name+"}", value, "{$"+name+"}", human.ShellWord(value))
	}
	fill := strings.NewReplacer(pairs...).Replace // no value is read again for braces
	h.text, h.less, h.list.text = fill(h.text), fill(h.less), fill(h.list.text)
	return h
}

// String returns the text.
func (h Hint) String() string { return h.text }

// ForList returns the hint for people who write lists, about one of a list's models.
func (h Hint) ForList() Hint {
	if h.list.text == "" {
		return h
	}
	return Hint{Cause: h.list.cause, text: h.list.text}
}

// For returns the hint with the first of its texts that fits, such as one that names only flags of
// the running command. If none does, it's the zero Hint: no hint is better than one that can't be
// followed.
func (h Hint) For(fits func(text string) bool) Hint {
	for _, text := range strings.Split(h.text+h.less, "\x00") {
		if fits(text) {
			h.text, h.less = text, ""
			return h
		}
	}
	return Hint{}
}

// Is reports whether a text is that of the row, with any facts. It's for tests of what is printed.
func (h Hint) Is(text string) bool {
	pattern := fact.ReplaceAllString(regexp.QuoteMeta(h.text), "(.+)")
	return regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(text)
}

// fact matches a word in braces, in a quoted pattern.
var fact = regexp.MustCompile(`\\\{(\\\$)?(\w+)\\\}`)

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
