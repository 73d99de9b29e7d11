package ptx

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Module is a parsed PTX file.
type Module struct {
	kernels map[string]*Kernel
	shared  map[string]int // offsets of .shared names; names without a size lie behind all others
	nShared int            // bytes of shared memory with a size
}

// Kernel is one entry point, ready to run.
type Kernel struct {
	name    string
	params  []param
	threads int // .maxntid, or 0

	code    []instr
	nRegs   int
	nPreds  int
	masks   []uint64  // bits of each register
	consts  []uint64  // rows behind the registers
	special []special // rows behind the constants
	nShared int
}

type param struct {
	name string
	typ  typ
}

// special is a value that the launch decides: a special register, or a parameter if name is "".
type special struct {
	name  string
	param int
}

// Kernel returns an entry point by name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("ptx: no entry point %q", name)
}

// With returns a copy of the module with another kernel in the place of the one of its name.
func (m *Module) With(k *Kernel) *Module {
	c := *m
	c.kernels = maps.Clone(m.kernels)
	c.kernels[k.name] = k
	return &c
}

// Without returns a copy of the kernel in which the n-th instruction of the given opcode, counted
// from 0, does nothing; ok is false when there are fewer. It serves to test tests.
func (k *Kernel) Without(opcode string, n int) (mutant *Kernel, line int, ok bool) {
	for i := range k.code {
		if k.code[i].opcode != opcode {
			continue
		}
		if n--; n >= 0 {
			continue
		}
		c := *k
		c.code = append([]instr(nil), k.code...)
		c.code[i] = instr{opcode: "nop", kind: kindNop, guard: -1, line: k.code[i].line}
		return &c, c.code[i].line, true
	}
	return nil, 0, false
}

// parser walks over tokens.
type parser struct {
	tokens []token
	at     int
	module *Module
}

// Parse reads a PTX module. Instructions that the interpreter does not know are an error here, not
// when they run.
func Parse(src []byte) (*Module, error) {
	tokens, err := lex(string(src))
	if err != nil {
		return nil, fmt.Errorf("ptx: %w", err)
	}
	p := &parser{tokens: tokens, module: &Module{kernels: map[string]*Kernel{}, shared: map[string]int{}}}
	for !p.done() {
		if err := p.directive(); err != nil {
			return nil, fmt.Errorf("ptx: line %d: %w", p.line(), err)
		}
	}
	return p.module, nil
}

func (p *parser) done() bool { return p.at >= len(p.tokens) }

func (p *parser) line() int { return p.tokens[max(0, min(p.at, len(p.tokens))-1)].line }

func (p *parser) next() string {
	if p.done() {
		return ""
	}
	p.at++
	return p.tokens[p.at-1].text
}

func (p *parser) peek() string {
	if p.done() {
		return ""
	}
	return p.tokens[p.at].text
}

func (p *parser) accept(text string) bool {
	if p.peek() != text {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(text string) error {
	if got := p.next(); got != text {
		return fmt.Errorf("%q where %q is expected", got, text)
	}
	return nil
}

// number reads an integer with an optional sign.
func (p *parser) number() (uint64, error) {
	negative := p.accept("-")
	v, err := parseNumber(p.next())
	if negative {
		v = -v
	}
	return v, err
}

func parseNumber(s string) (uint64, error) {
	v, err := strconv.ParseUint(strings.TrimSuffix(s, "U"), 0, 64)
	if err != nil {
		return 0, fmt.Errorf("number %q", s)
	}
	return v, nil
}

// directive reads one statement outside of functions.
func (p *parser) directive() error {
	switch d := p.next(); d {
	case ".version", ".address_size":
		p.next()
		return nil
	case ".target":
		p.next()
		for p.accept(",") {
			p.next()
		}
		return nil
	case ".extern", ".visible", ".weak":
		return nil
	case ".shared":
		return p.sharedVariable()
	case ".entry":
		return p.entry()
	default:
		return fmt.Errorf("directive %q is not supported", d)
	}
}

// sharedVariable reads ".align 16 .b8 name[size];" and places it.
func (p *parser) sharedVariable() error {
	align := uint64(1)
	var err error
	if p.accept(".align") {
		if align, err = p.number(); err != nil {
			return err
		}
	}
	t, err := parseType(strings.TrimPrefix(p.next(), "."))
	if err != nil {
		return err
	}
	name := p.next()
	size := uint64(t.bits / 8)
	if p.accept("[") {
		n := uint64(0)
		if p.peek() != "]" {
			if n, err = p.number(); err != nil {
				return err
			}
		}
		size *= n
		if err := p.expect("]"); err != nil {
			return err
		}
	}
	if align == 0 || align > 1<<20 || size > 1<<20 {
		return errors.New("shared variable of an odd size")
	}
	if size == 0 {
		p.module.shared[name] = -1 // placed at the launch, behind the others
		return p.expect(";")
	}
	m := p.module
	m.nShared = (m.nShared + int(align) - 1) &^ (int(align) - 1)
	m.shared[name] = m.nShared
	m.nShared += int(size)
	return p.expect(";")
}

// entry reads a kernel.
func (p *parser) entry() error {
	k := &Kernel{name: p.next(), nShared: (p.module.nShared + 15) &^ 15}
	if err := p.params(k); err != nil {
		return err
	}
	for !p.accept("{") {
		switch d := p.next(); d {
		case ".maxntid":
			n, err := p.number()
			if err != nil {
				return err
			}
			k.threads = int(n)
			for p.accept(",") {
				p.next()
			}
		case ".minnctapersm":
			p.next()
		default:
			return fmt.Errorf("directive %q is not supported", d)
		}
	}
	c := newCompiler(p.module, k)
	if err := p.body(c); err != nil {
		return err
	}
	if err := c.finish(); err != nil {
		return err
	}
	p.module.kernels[k.name] = k
	return nil
}

// params reads "(.param .u64 a, .param .u32 b)".
func (p *parser) params(k *Kernel) error {
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
		k.params = append(k.params, param{p.next(), t})
	}
	return nil
}

// body reads statements up to the kernel's closing brace.
func (p *parser) body(c *compiler) error {
	for depth := 1; depth > 0; {
		switch {
		case p.done():
			return errors.New("kernel without an end")
		case p.accept("{"):
			depth++
		case p.accept("}"):
			depth--
		default:
			if err := p.statement(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// statement reads a label, a declaration or an instruction.
func (p *parser) statement(c *compiler) error {
	if p.at+1 < len(p.tokens) && p.tokens[p.at+1].is(":") {
		c.label(p.next())
		p.next()
		return nil
	}
	line := p.tokens[p.at].line
	var words []string
	for !p.accept(";") {
		if p.done() {
			return errors.New("statement without an end")
		}
		words = append(words, p.next())
	}
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case ".reg":
		return c.registers(words[1:])
	case ".pragma":
		return nil
	}
	return c.instruction(words, line)
}
