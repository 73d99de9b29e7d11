package safetensors

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scanner reads exactly the JSON that a safetensors header may hold. It never parses a general
// value, and anything unexpected is an error. So nesting can't grow, and nothing is skipped.
type scanner struct {
	b   []byte // valid UTF-8
	pos int
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

// accept skips white space. If c comes next, it consumes c and returns true.
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

// list reads items between two brackets, separated by commas. It calls item at each item.
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

// object reads `{"key": value, …}`. It calls member at each value; member has to refuse a repeated
// key.
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

// numbers reads `[1, 2, …]`. Each number is an integer from 0 to 2^63-1. It refuses more numbers
// than a tensor may have dimensions.
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
	n, err := strconv.ParseInt(text, 10, 64)
	fraction := s.pos < len(s.b) && (s.b[s.pos] == '.' || s.b[s.pos]|0x20 == 'e')
	if err != nil || fraction || len(text) > 1 && text[0] == '0' {
		return 0, fail(ErrNumber, tensor, "at byte %d", start)
	}
	return n, nil
}

// str reads a JSON string, at most as long as metadata may be. Raw control characters and unpaired
// surrogates are errors, so every name has exactly one meaning.
func (s *scanner) str(tensor string) (string, error) {
	if err := s.expect('"', tensor); err != nil {
		return "", err
	}
	begin, escaped := s.pos, false
	for ; s.pos < len(s.b); s.pos++ {
		switch c := s.b[s.pos]; {
		case c == '"':
			s.pos++
			if text := s.b[begin : s.pos-1]; !escaped {
				return string(text), nil
			}
			return s.unescape(tensor, s.b[begin-1:s.pos])
		case c < 0x20:
			return "", s.syntax(tensor, "control character in a string")
		case s.pos-begin > maxMetadataBytes:
			return "", fail(ErrLimit, tensor, "a string of more than %d bytes", maxMetadataBytes)
		case c == '\\':
			escaped = true
			s.pos++ // the escaped character
		}
	}
	return "", s.syntax(tensor, "unterminated string")
}

// halfPair matches an escaped half of a surrogate pair. json.Unmarshal reads an unpaired half as
// utf8.RuneError.
var halfPair = regexp.MustCompile(`(?i)\\ud[89a-f]`)

// unescape reads a string with its quotation marks.
func (s *scanner) unescape(tensor string, quoted []byte) (text string, err error) {
	if json.Unmarshal(quoted, &text) != nil || strings.ContainsRune(text, utf8.RuneError) &&
		halfPair.Match(quoted) {
		return "", s.syntax(tensor, "bad escape")
	}
	return text, nil
}
