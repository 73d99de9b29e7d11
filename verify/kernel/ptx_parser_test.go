package kernel

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// token is a word, a number, a string or a punctuation mark of PTX text.
type token struct {
	text string
	line int
}

// tokenPattern also matches comments. Dots belong to words, since they bind an opcode to its modifiers.
var tokenPattern = regexp.MustCompile(`//[^\n]*|"[^"\n]*"|[\w%$.]+|[-{}()\[\]<>,;:+@!|]`)

// lex cuts PTX text into tokens and drops comments.
func lex(src string) ([]token, error) {
	var tokens []token
	line, end := 1, 0
	for _, match := range append(tokenPattern.FindAllStringIndex(src, -1), []int{len(src), len(src)}) {
		between, text := src[end:match[0]], src[match[0]:match[1]]
		if other := strings.TrimSpace(between); other != "" {
			return nil, fmt.Errorf("line %d: character %q", line, other[:1])
		}
		line += strings.Count(between, "\n")
		end = match[1]
		if text != "" && !strings.HasPrefix(text, "//") {
			tokens = append(tokens, token{text, line})
		}
	}
	return tokens, nil
}

// parser walks over tokens.
type parser struct {
	tokens []token
	at     int
	module *module
}

// parsePTX reads a PTX module. An instruction that the interpreter does not know is an error here, not when it runs.
func parsePTX(src []byte) (*module, error) {
	tokens, err := lex(string(src))
	if err != nil {
		return nil, fmt.Errorf("ptx: %w", err)
	}
	p := &parser{tokens: tokens, module: &module{kernels: map[string]*entryPoint{}}}
	for !p.done() {
		if err := p.directive(); err != nil {
			return nil, fmt.Errorf("ptx: line %d: %w", p.tokens[p.at-1].line, err)
		}
	}
	return p.module, nil
}

func (p *parser) done() bool { return p.at >= len(p.tokens) }

// peek returns the next token's text, or "" at the end.
func (p *parser) peek() string {
	if p.done() {
		return ""
	}
	return p.tokens[p.at].text
}

func (p *parser) next() string {
	text := p.peek()
	if text != "" {
		p.at++
	}
	return text
}

func (p *parser) accept(text string) bool {
	if p.peek() != text {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(texts ...string) error {
	for _, text := range texts {
		if got := p.next(); got != text {
			return fmt.Errorf("%q where %q is expected", got, text)
		}
	}
	return nil
}

// skipList skips "a, b, c".
func (p *parser) skipList() {
	p.next()
	for p.accept(",") {
		p.next()
	}
}

// parseNumber reads an integer with an optional sign.
func parseNumber(s string) (uint64, error) {
	digits, negative := strings.CutPrefix(s, "-")
	v, err := strconv.ParseUint(strings.TrimSuffix(digits, "U"), 0, 64)
	if err != nil {
		return 0, fmt.Errorf("number %q", s)
	}
	if negative {
		v = -v
	}
	return v, nil
}

// directive reads one statement outside of kernels.
func (p *parser) directive() error {
	switch d := p.next(); d {
	case ".version", ".address_size", ".target":
		p.skipList()
		return nil
	case ".extern", ".visible", ".weak":
		return nil
	case ".shared":
		return p.dynamicShared()
	case ".entry":
		return p.entry()
	default:
		return fmt.Errorf("directive %q is not supported", d)
	}
}

// dynamicShared reads ".align 16 .b8 name[];". All such names stand for the start of shared memory.
func (p *parser) dynamicShared() error {
	if p.accept(".align") {
		p.next()
	}
	p.next() // the type
	p.module.shared = append(p.module.shared, p.next())
	return p.expect("[", "]", ";")
}

// entry reads a kernel.
func (p *parser) entry() error {
	c := newCompiler(p.module, p.next())
	if err := p.params(c); err != nil {
		return err
	}
	for !p.accept("{") {
		switch d := p.next(); d {
		case ".maxntid":
			n, err := strconv.Atoi(p.peek())
			if err != nil {
				return fmt.Errorf("%s of %q", d, p.peek())
			}
			c.kernel.threads = n
			p.skipList()
		case ".minnctapersm":
			p.next()
		default:
			return fmt.Errorf("directive %q is not supported", d)
		}
	}
	if err := p.block(c); err != nil {
		return err
	}
	if err := c.finish(); err != nil {
		return err
	}
	p.module.kernels[c.kernel.name] = c.kernel
	return nil
}

// block reads statements up to a closing brace. What a block in braces declares is forgotten at its end.
func (p *parser) block(c *compiler) error {
	for !p.accept("}") {
		if !p.accept("{") {
			if err := p.statement(c); err != nil {
				return err
			}
			continue
		}
		outside := c.rows
		c.rows = maps.Clone(outside)
		if err := p.block(c); err != nil {
			return err
		}
		c.rows = outside
	}
	return nil
}

// params reads "(.param .u64 a, .param .u32 b)".
func (p *parser) params(c *compiler) error {
	if err := p.expect("("); err != nil {
		return err
	}
	for !p.accept(")") {
		p.accept(",")
		if err := p.expect(".param"); err != nil {
			return err
		}
		t, err := parseType(strings.TrimPrefix(p.next(), "."))
		if err != nil {
			return err
		}
		c.param(p.next(), t)
	}
	return nil
}

// statement reads a label, a declaration or an instruction.
func (p *parser) statement(c *compiler) error {
	line := p.tokens[min(p.at, len(p.tokens)-1)].line
	var words []string
	for !p.accept(";") {
		if p.done() {
			return errors.New("kernel without an end")
		}
		words = append(words, p.next())
		if len(words) == 1 && p.accept(":") {
			c.labels[words[0]] = len(c.kernel.code)
			return nil
		}
	}
	switch {
	case len(words) == 0 || words[0] == ".pragma":
		return nil
	case words[0] == ".reg":
		return c.registers(words[1:])
	}
	return c.instruction(words, line)
}
