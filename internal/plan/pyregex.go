package plan

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// compilePython returns a matcher that agrees with Python's re.fullmatch(pattern, path), or an error that names the
// construct that RE2 cannot express. A pattern that matches the empty path, which is the whole model, is refused.
func compilePython(pattern string) (*regexp.Regexp, error) {
	const maxBytes = 64 << 10
	if len(pattern) > maxBytes {
		return nil, fmt.Errorf("pattern of %d bytes: more than %d", len(pattern), maxBytes)
	}
	t := &translator{in: pattern}
	if err := t.run(); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	re, err := compileBounded(`\A(?:` + t.out.String() + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: not a regex that this tool can match: %w", pattern, cause(err))
	}
	if re.MatchString("") {
		return nil, fmt.Errorf("pattern %q: matches the empty path, which is the whole model", pattern)
	}
	return re, nil
}

// compileBounded compiles an RE2 expression whose program stays small: repetitions of repetitions would take seconds.
func compileBounded(expr string) (*regexp.Regexp, error) {
	const most = 50_000
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if cost(tree) > most {
		return nil, errors.New("it is too large")
	}
	return regexp.Compile(expr)
}

// cost estimates the size of a compiled expression, in instructions and character ranges. It saturates.
func cost(re *syntax.Regexp) int {
	const limit = 1 << 30
	n := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		n = min(n+cost(sub), limit)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(re.Min+1, re.Max, 1), limit)
	}
	return n
}

// cause drops the translated expression from a compile error: the user did not write it.
func cause(err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return fmt.Errorf("%s", e.Code)
	}
	return err
}

// translator rewrites a Python regex into RE2 syntax, element by element.
type translator struct {
	in  string
	pos int
	out strings.Builder

	atom string // last element written, when it stands for exactly one character; "" otherwise
	held string // element under a possessive quantifier: the next one must not be able to start with it
	must bool   // the last element closed such a hold, so it must not be optional
	fold bool   // (?i) was seen
}

// run translates the whole pattern.
func (t *translator) run() error {
	for t.pos < len(t.in) {
		if err := t.step(); err != nil {
			return err
		}
	}
	return nil
}

// step translates one element: a group bracket, a class, an escape, a quantifier or a character.
func (t *translator) step() error {
	switch c := t.in[t.pos]; c {
	case '(':
		return t.group()
	case '[':
		return t.class()
	case '\\':
		return t.escape()
	case '*', '+', '?', '{':
		return t.quantifier()
	case '$':
		return t.dollar()
	case ')', '|', '^':
		return t.emit(string(c), "")
	default:
		_, n := utf8.DecodeRuneInString(t.in[t.pos:])
		s := t.in[t.pos : t.pos+n]
		return t.emit(s, s)
	}
}

// emit writes an element that spans as many bytes of the input as it is long.
func (t *translator) emit(s, atom string) error {
	t.pos += len(s)
	return t.put(s, atom)
}

// put writes an element. atom is the RE2 expression of the single character that it matches, if it does.
func (t *translator) put(s, atom string) error {
	t.must = t.held != ""
	if t.must && (atom == "" || overlap(t.held, atom)) {
		return errPossessive
	}
	t.held = ""
	t.out.WriteString(s)
	t.atom = atom
	return nil
}

// overlap says whether two one-character expressions can match the same character.
func overlap(a, b string) bool {
	ra, errA := charRanges(a)
	rb, errB := charRanges(b)
	if errA != nil || errB != nil {
		return true
	}
	for i := 0; i+1 < len(ra); i += 2 {
		for j := 0; j+1 < len(rb); j += 2 {
			if ra[i] <= rb[j+1] && rb[j] <= ra[i+1] {
				return true
			}
		}
	}
	return false
}

// charRanges returns the characters of a one-character expression as pairs of bounds.
func charRanges(expr string) ([]rune, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	switch re.Op {
	case syntax.OpLiteral:
		return []rune{re.Rune[0], re.Rune[0]}, nil
	case syntax.OpCharClass:
		return re.Rune, nil
	default: // any character
		return []rune{0, utf8.MaxRune}, nil
	}
}

// group translates the start of a group. Lookarounds, atomic groups, backreferences and conditions are refused.
func (t *translator) group() error {
	rest := t.in[t.pos:]
	switch {
	case !strings.HasPrefix(rest, "(?"):
		return t.emit("(", "")
	case strings.HasPrefix(rest, "(?:"):
		return t.emit("(?:", "")
	case strings.HasPrefix(rest, "(?P<"):
		return t.emit("(?P<", "")
	}
	for _, g := range unsupportedGroups {
		if strings.HasPrefix(rest, g.start) {
			return fmt.Errorf("%s cannot be written in RE2", g.what)
		}
	}
	return t.flags(rest)
}

// unsupportedGroups are Python's group forms that RE2 has no words for; longer starts come first.
var unsupportedGroups = [...]struct{ start, what string }{
	{"(?P=", "a backreference"},
	{"(?P>", "a recursive group"},
	{"(?<=", "a lookbehind"},
	{"(?<!", "a lookbehind"},
	{"(?<", "a group name without P"},
	{"(?=", "a lookahead"},
	{"(?!", "a lookahead"},
	{"(?>", "an atomic group"},
	{"(?(", "a conditional group"},
	{"(?#", "a comment group"},
}

// flags translates (?i) and (?i:…); only the flags i, m and s mean the same in both languages.
func (t *translator) flags(rest string) error {
	end := strings.IndexAny(rest, ":)")
	if end < 0 {
		return fmt.Errorf("a group is not closed")
	}
	names := rest[2:end]
	if names == "" || strings.Trim(names, "ims") != "" {
		return fmt.Errorf("the flags %q cannot be written in RE2", names)
	}
	t.fold = t.fold || strings.Contains(names, "i")
	if rest[end] == ')' && t.pos != 0 {
		return fmt.Errorf("flags for the whole pattern must stand at its start")
	}
	return t.emit(rest[:end+1], "")
}

// dollar keeps $ where both languages agree: at the end of an alternative.
func (t *translator) dollar() error {
	if rest := t.in[t.pos+1:]; rest != "" && rest[0] != ')' && rest[0] != '|' {
		return fmt.Errorf("$ before the end cannot be written in RE2")
	}
	return t.emit("$", "")
}

// quantifier translates *, +, ?, {m,n} and their lazy and possessive forms.
func (t *translator) quantifier() error {
	q, n := t.repeat()
	if n == 0 { // a brace that is no quantifier is a character
		t.pos++
		return t.put(`\{`, `\{`)
	}
	if t.must && (q[0] == '*' || q[0] == '?' || strings.HasPrefix(q, "{0")) {
		return errPossessive
	}
	atom := t.atom
	t.pos += n
	t.atom, t.must = "", false
	t.out.WriteString(q)
	switch rest := t.in[t.pos:]; {
	case strings.HasPrefix(rest, "?"):
		t.pos++
		t.out.WriteByte('?')
	case strings.HasPrefix(rest, "+"):
		t.pos++
		return t.possessive(atom)
	}
	return nil
}

// repeat reads a quantifier and returns it in RE2 syntax with the number of input bytes, 0 when it is none.
func (t *translator) repeat() (q string, n int) {
	rest := t.in[t.pos:]
	if rest[0] != '{' {
		return rest[:1], 1
	}
	m := braces.FindStringSubmatch(rest)
	switch {
	case m == nil || m[0] == "{}":
		return "", 0
	case m[1] == "":
		return "{0" + m[2] + "}", len(m[0])
	default:
		return m[0], len(m[0])
	}
}

// braces is a counted repetition as Python reads it: {3}, {3,}, {,5}, {3,5} and {,}.
var braces = regexp.MustCompile(`^\{([0-9]*)(,[0-9]*)?\}`)

// errPossessive is the answer to a possessive quantifier that matters.
var errPossessive = errors.New("a possessive quantifier here cannot be written in RE2; drop its second '+'")

// possessive handles the second '+' of a possessive quantifier. Dropping it changes nothing if the quantified
// character cannot start what must follow, or if nothing follows.
func (t *translator) possessive(atom string) error {
	if atom == "" || t.fold {
		return errPossessive
	}
	if t.pos < len(t.in) {
		t.held = atom
	}
	return nil
}

// escape translates a backslash sequence outside a class.
func (t *translator) escape() error {
	e, err := pyEscape(t.in[t.pos:], false)
	if err != nil {
		return err
	}
	t.pos += e.nBytes
	if e.kind == border {
		return t.put(e.text, "")
	}
	return t.put(e.text, e.text)
}

// class translates a character class, member by member, so that nothing in it can turn into RE2's [:name:].
func (t *translator) class() error {
	var b strings.Builder
	b.WriteByte('[')
	rest := t.in[t.pos+1:]
	if after, ok := strings.CutPrefix(rest, "^"); ok {
		b.WriteByte('^')
		rest = after
	}
	for first := true; first || !strings.HasPrefix(rest, "]"); first = false {
		n, err := classItem(&b, rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	b.WriteByte(']')
	t.pos = len(t.in) - len(rest) + 1
	return t.put(b.String(), b.String())
}

// classItem translates one member of a class, or a range of two, and returns the bytes of input it took.
func classItem(b *strings.Builder, rest string) (int, error) {
	lo, err := classMember(rest)
	if err != nil {
		return 0, err
	}
	b.WriteString(lo.text)
	rest = rest[lo.nBytes:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		return lo.nBytes, nil
	}
	hi, err := classMember(rest[1:])
	if err != nil {
		return 0, err
	}
	if lo.kind != character || hi.kind != character {
		return 0, errors.New("a range in a character class needs a character at both ends")
	}
	b.WriteString("-" + hi.text)
	return lo.nBytes + 1 + hi.nBytes, nil
}

// classMember translates one character or escape of a class.
func classMember(rest string) (escape, error) {
	if rest == "" {
		return escape{}, errors.New("a character class is not closed")
	}
	if rest[0] == '\\' {
		return pyEscape(rest, true)
	}
	_, n := utf8.DecodeRuneInString(rest)
	return escape{text: literal(rest[:n]), nBytes: n}, nil
}

// literal quotes a character for RE2, inside a class or outside.
func literal(s string) string {
	if s == "-" {
		return `\-`
	}
	return regexp.QuoteMeta(s)
}
