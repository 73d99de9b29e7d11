package ptx

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// token is a word, a number, a string, or a punctuation mark of PTX text.
type token struct {
	text string
	line int
}

// tokenPattern also matches comments. Dots belong to words, because they connect an opcode with its
// modifiers.
var tokenPattern = regexp.MustCompile(`//[^\n]*|"[^"\n]*"|[\w%$.]+|[-{}()\[\]<>,;:+@!|]`)

// lex splits PTX text into tokens and drops comments.
func lex(src string) (tokens []token) {
	line, end := 1, 0
	for _, match := range append(tokenPattern.FindAllStringIndex(src, -1), []int{len(src), len(src)}) {
		between, text := src[end:match[0]], src[match[0]:match[1]]
		if other := strings.TrimSpace(between); other != "" {
			unsupported("character %q", other[:1])
		}
		line += strings.Count(between, "\n")
		end = match[1]
		if text != "" && !strings.HasPrefix(text, "//") {
			tokens = append(tokens, token{text, line})
		}
	}
	return tokens
}

// unsupported ends Parse: the text has something that the interpreter doesn't know.
func unsupported(format string, args ...any) { panic(fmt.Errorf(format, args...)) }

// parser walks over tokens.
type parser struct {
	tokens []token
	at     int
	module *Module
}

// Parse reads a PTX module. If the interpreter doesn't know an instruction, that's an error
// here, not when it runs.
func Parse(src string) (m *Module, err error) {
	p := &parser{module: &Module{Kernels: map[string]*Kernel{}}}
	defer func() {
		if reason, ok := recover().(error); ok {
			line := 0
			if p.at > 0 {
				line = p.tokens[p.at-1].line
			}
			err = fmt.Errorf("ptx: line %d: %w", line, reason)
		}
	}()
	for p.tokens = lex(src); !p.done(); {
		p.directive()
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

func (p *parser) expect(texts ...string) {
	for _, text := range texts {
		if got := p.next(); got != text {
			unsupported("%q where %q is expected", got, text)
		}
	}
}

// skipList skips "a, b, c".
func (p *parser) skipList() {
	p.next()
	for p.accept(",") {
		p.next()
	}
}

// parseNumber reads an integer with an optional sign.
func parseNumber(s string) uint64 {
	digits, negative := strings.CutPrefix(s, "-")
	v, err := strconv.ParseUint(strings.TrimSuffix(digits, "U"), 0, 64)
	if err != nil {
		unsupported("operand %q", s)
	}
	if negative {
		v = -v
	}
	return v
}

// directive reads one statement outside of kernels.
func (p *parser) directive() {
	switch d := p.next(); d {
	case ".version", ".address_size", ".target":
		p.skipList()
	case ".extern", ".visible", ".weak":
	case ".shared":
		p.dynamicShared()
	case ".entry":
		p.entry()
	default:
		unsupported("directive %q", d)
	}
}

// dynamicShared reads ".align 16 .b8 name[];". All such names mean the start of shared memory.
func (p *parser) dynamicShared() {
	if p.accept(".align") {
		p.next()
	}
	p.next() // the type
	p.module.shared = append(p.module.shared, p.next())
	p.expect("[", "]", ";")
}

// entry reads a kernel.
func (p *parser) entry() {
	c := newCompiler(p.module, p.next())
	p.params(c)
	for !p.accept("{") {
		switch d := p.next(); d {
		case ".maxntid", ".minnctapersm":
			p.skipList()
		default:
			unsupported("directive %q", d)
		}
	}
	p.block(c)
	c.finish()
	p.module.Kernels[c.kernel.name] = c.kernel
}

// block reads statements up to a closing brace. Declarations inside the braces end there.
func (p *parser) block(c *compiler) {
	for !p.accept("}") {
		if !p.accept("{") {
			p.statement(c)
			continue
		}
		outside := c.rows
		c.rows = maps.Clone(outside)
		p.block(c)
		c.rows = outside
	}
}

// params reads "(.param .u64 a, .param .u32 b)".
func (p *parser) params(c *compiler) {
	p.expect("(")
	for !p.accept(")") {
		p.accept(",")
		p.expect(".param")
		t := parseType(strings.TrimPrefix(p.next(), "."))
		c.param(p.next(), t)
	}
}

// statement reads a label, a declaration, or an instruction.
func (p *parser) statement(c *compiler) {
	line := p.tokens[min(p.at, len(p.tokens)-1)].line
	var words []string
	for !p.accept(";") {
		if p.done() {
			unsupported("kernel without an end")
		}
		words = append(words, p.next())
		if len(words) == 1 && p.accept(":") {
			c.labels[words[0]] = len(c.kernel.code)
			return
		}
	}
	switch {
	case len(words) == 0 || words[0] == ".pragma":
	case words[0] == ".reg":
		c.registers(words[1:])
	default:
		c.instruction(words, line)
	}
}
