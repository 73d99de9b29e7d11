package ptx

import (
	"fmt"
	"strings"
)

// token is a word, a number or a punctuation mark of PTX text.
type token struct {
	text string
	line int
}

func (t token) is(text string) bool { return t.text == text }

// isWordByte tells what names, opcodes and numbers are made of; dots bind an opcode to its
// modifiers.
func isWordByte(c byte) bool {
	return c == '_' || c == '%' || c == '$' || c == '.' ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// lex cuts PTX text into tokens and drops comments.
func lex(src string) ([]token, error) {
	var tokens []token
	line := 1
	for i := 0; i < len(src); {
		start := i
		switch c := src[i]; {
		case c == '\n':
			line++
			i++
			continue
		case c == ' ' || c == '\t' || c == '\r':
			i++
			continue
		case strings.HasPrefix(src[i:], "//"):
			for i < len(src) && src[i] != '\n' {
				i++
			}
			continue
		case isWordByte(c):
			for i < len(src) && isWordByte(src[i]) {
				i++
			}
		case c == '"':
			end := strings.IndexByte(src[i+1:], '"')
			if end < 0 {
				return nil, fmt.Errorf("line %d: string without an end", line)
			}
			i += end + 2
		case strings.IndexByte("{}()[]<>,;:+-@!|", c) >= 0:
			i++
		default:
			return nil, fmt.Errorf("line %d: character %q", line, c)
		}
		tokens = append(tokens, token{src[start:i], line})
	}
	return tokens, nil
}
