package safetensors

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads exactly the JSON that a safetensors header may hold. It knows no general value: everything unexpected is
// an error, so nesting cannot grow, and nothing is skipped unseen.
type scanner struct {
	b    []byte // valid UTF-8
	pos  int
	text []byte // the string that is being read
}

func (s *scanner) space() {
	for s.pos < len(s.b) {
		switch s.b[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// accept skips white space and takes c if it comes next.
func (s *scanner) accept(c byte) bool {
	s.space()
	if s.pos < len(s.b) && s.b[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) expect(c byte, tensor string) error {
	if !s.accept(c) {
		return s.syntax(tensor, "expected "+string(c))
	}
	return nil
}

func (s *scanner) syntax(tensor, detail string) error {
	return fail(ErrSyntax, tensor, "%s at byte %d", detail, s.pos)
}

// list reads items between two brackets, with commas between them. It calls item with the scanner at each item.
func (s *scanner) list(begin, end byte, tensor string, item func() error) error {
	if err := s.expect(begin, tensor); err != nil || s.accept(end) {
		return err
	}
	for {
		if err := item(); err != nil || s.accept(end) {
			return err
		}
		if err := s.expect(',', tensor); err != nil {
			return err
		}
	}
}

// object reads `{"key": value, …}`. It calls member with the scanner at each value; member has to refuse a repeated key.
func (s *scanner) object(tensor string, member func(key string) error) error {
	return s.list('{', '}', tensor, func() error {
		key, err := s.str(tensor)
		if err != nil {
			return err
		}
		if err := s.expect(':', tensor); err != nil {
			return err
		}
		return member(key)
	})
}

// numbers reads `[1, 2, …]`, each number an integer from 0 to 2^63-1. It refuses more numbers than a tensor may have dimensions.
func (s *scanner) numbers(tensor string) ([]int64, error) {
	var few [maxRank]int64
	list := few[:0]
	err := s.list('[', ']', tensor, func() error {
		if len(list) == maxRank {
			return fail(ErrLimit, tensor, "more than %d dimensions", maxRank)
		}
		n, err := s.number(tensor)
		list = append(list, n)
		return err
	})
	return append([]int64{}, list...), err
}

func (s *scanner) number(tensor string) (int64, error) {
	s.space()
	start := s.pos
	for s.pos < len(s.b) && s.b[s.pos] >= '0' && s.b[s.pos] <= '9' {
		s.pos++
	}
	text := string(s.b[start:s.pos])
	if text == "" || len(text) > 1 && text[0] == '0' {
		return 0, fail(ErrNumber, tensor, "at byte %d", start)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fail(ErrNumber, tensor, "too large at byte %d", start)
	}
	if s.pos < len(s.b) && (s.b[s.pos] == '.' || s.b[s.pos]|0x20 == 'e') {
		return 0, fail(ErrNumber, tensor, "fraction or exponent at byte %d", start)
	}
	return n, nil
}

// str reads a JSON string, at most as long as metadata may be. Raw control characters and unpaired surrogates are errors, so that
// every name has exactly one meaning.
func (s *scanner) str(tensor string) (string, error) {
	if err := s.expect('"', tensor); err != nil {
		return "", err
	}
	s.text = s.text[:0]
	for s.pos < len(s.b) {
		c := s.b[s.pos]
		s.pos++
		switch {
		case c == '"':
			return string(s.text), nil
		case c < 0x20:
			return "", s.syntax(tensor, "control character in a string")
		case len(s.text) > maxMetadataBytes:
			return "", fail(ErrLimit, tensor, "a string of more than %d bytes", maxMetadataBytes)
		case c != '\\':
			s.text = append(s.text, c)
		default:
			r, ok := s.escape()
			if !ok {
				return "", s.syntax(tensor, "bad escape")
			}
			s.text = utf8.AppendRune(s.text, r)
		}
	}
	return "", s.syntax(tensor, "string without an end")
}

// escape reads the rest of an escape, behind the backslash.
func (s *scanner) escape() (rune, bool) {
	if s.pos >= len(s.b) {
		return 0, false
	}
	c := s.b[s.pos]
	s.pos++
	if c == 'u' {
		return s.unicode()
	}
	const letters, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := strings.IndexByte(letters, c)
	if i < 0 {
		return 0, false
	}
	return rune(meanings[i]), true
}

// unicode reads the digits of \uXXXX and, after a high surrogate, the low one.
func (s *scanner) unicode() (rune, bool) {
	r, ok := s.hex4()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if s.pos+1 >= len(s.b) || s.b[s.pos] != '\\' || s.b[s.pos+1] != 'u' {
		return 0, false
	}
	s.pos += 2
	low, ok := s.hex4()
	r = utf16.DecodeRune(r, low)
	return r, ok && r != utf8.RuneError
}

func (s *scanner) hex4() (rune, bool) {
	if s.pos+4 > len(s.b) {
		return 0, false
	}
	r, err := strconv.ParseUint(string(s.b[s.pos:s.pos+4]), 16, 16)
	s.pos += 4
	return rune(r), err == nil
}
