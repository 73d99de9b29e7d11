package ptx

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// kind says how an instruction is executed.
type kind uint8

const (
	kindNop     kind = iota
	kindALU          // dst = eval(a, b, c)
	kindSetp         // predicate dst = eval(a, b, c) != 0, joined with predicate d where there is one
	kindPred         // predicate dst = onMasks(a, b)
	kindSelp         // dst = predicate d ? a : b
	kindLoad         // vec, or dst, = [a + off]
	kindStore        // [a + off] = vec, or b
	kindBranch       // to target
	kindReturn       //
	kindBarrier      //
	kindShuffle      // dst = a of another lane
)

// instr is one instruction. Operands are numbers of rows of a warp's registers, or of predicates.
type instr struct {
	opcode     string
	kind       kind
	guard      int // predicate, or -1
	negate     bool
	dst        int
	a, b, c, d int
	eval       func(a, b, c uint64) uint64
	onMasks    func(a, b uint32) uint32
	source     func(lane, b, c int) int // of a shuffle
	target     int
	meet       int // where the lanes that a branch parts come together again
	label      string
	space      space
	size       int // bytes of one element of an access
	off        uint64
	vec        []int
	line       int
}

// space is an address space.
type space uint8

const (
	spaceGlobal space = iota
	spaceShared
)

// operand is one operand of an instruction as written.
type operand struct {
	words []string
}

// compiler turns the statements of a kernel into instructions.
type compiler struct {
	module   *Module
	kernel   *Kernel
	regs     map[string]int
	preds    map[string]int
	labels   map[string]int
	consts   map[uint64]int // rows of constants, counted from 0
	specials map[special]int
}

func newCompiler(m *Module, k *Kernel) *compiler {
	return &compiler{
		module: m, kernel: k,
		regs: map[string]int{}, preds: map[string]int{}, labels: map[string]int{},
		consts: map[uint64]int{}, specials: map[special]int{},
	}
}

func (c *compiler) label(name string) { c.labels[name] = len(c.kernel.code) }

// registers reads ".b32 %r<10>" or ".pred p, q".
func (c *compiler) registers(words []string) error {
	if len(words) < 2 {
		return errors.New("register declaration")
	}
	t, err := parseType(strings.TrimPrefix(words[0], "."))
	if err != nil {
		return err
	}
	for i := 1; i < len(words); i++ {
		if words[i] == "," {
			continue
		}
		if i+3 < len(words) && words[i+1] == "<" {
			n, err := strconv.Atoi(words[i+2])
			if err != nil || n > 1<<20 {
				return fmt.Errorf("%q registers", words[i+2])
			}
			for j := range n {
				c.register(words[i]+strconv.Itoa(j), t)
			}
			i += 3
			continue
		}
		c.register(words[i], t)
	}
	return nil
}

func (c *compiler) register(name string, t typ) {
	if t.bits == 1 {
		c.preds[name] = c.kernel.nPreds
		c.kernel.nPreds++
		return
	}
	c.regs[name] = c.kernel.nRegs
	c.kernel.nRegs++
	c.kernel.masks = append(c.kernel.masks, t.mask())
}

// Rows of constants and special registers lie behind the registers, whose number is known only at
// the end; until finish they carry these offsets.
const (
	constRows   = 1 << 24
	specialRows = 1 << 25
)

func (c *compiler) constant(v uint64) int {
	row, ok := c.consts[v]
	if !ok {
		row = len(c.kernel.consts)
		c.consts[v] = row
		c.kernel.consts = append(c.kernel.consts, v)
	}
	return constRows + row
}

func (c *compiler) specialRow(s special) int {
	row, ok := c.specials[s]
	if !ok {
		row = len(c.kernel.special)
		c.specials[s] = row
		c.kernel.special = append(c.kernel.special, s)
	}
	return specialRows + row
}

// instruction compiles "@!%p1 opcode a, b, c".
func (c *compiler) instruction(words []string, line int) error {
	in := instr{guard: -1, line: line}
	if words[0] == "@" {
		words = words[1:]
		if len(words) > 0 && words[0] == "!" {
			in.negate, words = true, words[1:]
		}
		if len(words) < 2 {
			return errors.New("guard without an instruction")
		}
		p, ok := c.preds[words[0]]
		if !ok {
			return fmt.Errorf("guard %q", words[0])
		}
		in.guard, words = p, words[1:]
	}
	in.opcode = words[0]
	parts := strings.Split(words[0], ".")
	build, ok := opcodes[parts[0]]
	if !ok {
		return fmt.Errorf("instruction %q is not supported", words[0])
	}
	if err := build(c, &in, parts[1:], operands(words[1:])); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(words, " "), err)
	}
	c.kernel.code = append(c.kernel.code, in)
	return nil
}

// operands cuts words at the commas outside of brackets and braces.
func operands(words []string) []operand {
	var list []operand
	var o operand
	depth := 0
	for _, w := range words {
		switch w {
		case "[", "{":
			depth++
		case "]", "}":
			depth--
		case ",":
			if depth == 0 {
				list, o = append(list, o), operand{}
				continue
			}
		}
		o.words = append(o.words, w)
	}
	if len(o.words) > 0 {
		list = append(list, o)
	}
	return list
}

// value gives the row of a register, an immediate of type t, a special register or a shared name.
func (c *compiler) value(o operand, t typ) (int, error) {
	if len(o.words) == 2 && o.words[0] == "-" {
		v, err := parseNumber(o.words[1])
		return c.constant(-v & t.mask()), err
	}
	if len(o.words) != 1 {
		return 0, fmt.Errorf("operand %q", strings.Join(o.words, ""))
	}
	w := o.words[0]
	if row, ok := c.regs[w]; ok {
		return row, nil
	}
	if '0' <= w[0] && w[0] <= '9' {
		v, err := parseNumber(w)
		return c.constant(v & t.mask()), err
	}
	if off, ok := c.sharedAddress(w); ok {
		return c.constant(off), nil
	}
	if _, ok := specialRegisters[w]; ok {
		return c.specialRow(special{name: w}), nil
	}
	return 0, fmt.Errorf("operand %q", w)
}

func (c *compiler) sharedAddress(name string) (uint64, bool) {
	off, ok := c.module.shared[name]
	if off < 0 {
		off = c.kernel.nShared
	}
	return uint64(off), ok
}

// values gives the rows of n operands of type t, from the first.
func (c *compiler) values(ops []operand, t typ, rows ...*int) error {
	if len(ops) < len(rows) {
		return errors.New("too few operands")
	}
	for i, row := range rows {
		var err error
		if *row, err = c.value(ops[i], t); err != nil {
			return err
		}
	}
	return nil
}

// dest gives the row of a register to write.
func (c *compiler) dest(o operand) (int, error) {
	if len(o.words) == 1 {
		if row, ok := c.regs[o.words[0]]; ok {
			return row, nil
		}
	}
	return 0, fmt.Errorf("destination %q", strings.Join(o.words, ""))
}

func (c *compiler) pred(o operand) (int, error) {
	if len(o.words) == 1 {
		if p, ok := c.preds[o.words[0]]; ok {
			return p, nil
		}
	}
	return 0, fmt.Errorf("predicate %q", strings.Join(o.words, ""))
}

// vector gives the rows of "{a, b}", or of a single operand.
func (c *compiler) vector(o operand, t typ) ([]int, error) {
	if len(o.words) > 0 && o.words[0] == "{" {
		var rows []int
		for _, e := range operands(o.words[1 : len(o.words)-1]) {
			row, err := c.value(e, t)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		return rows, nil
	}
	row, err := c.value(o, t)
	return []int{row}, err
}

// address reads "[base+off]".
func (c *compiler) address(in *instr, o operand) error {
	w := o.words
	if len(w) < 3 || w[0] != "[" {
		return fmt.Errorf("address %q", strings.Join(w, ""))
	}
	var err error
	if in.a, err = c.value(operand{w[1:2]}, types["u64"]); err != nil {
		return err
	}
	w = w[2 : len(w)-1]
	if len(w) == 0 {
		return nil
	}
	negative := w[len(w)-2] == "-"
	if in.off, err = parseNumber(w[len(w)-1]); negative {
		in.off = -in.off
	}
	return err
}

// finish resolves labels and places constants and special registers behind the registers.
func (c *compiler) finish() error {
	k := c.kernel
	place := func(row *int) {
		switch {
		case *row >= specialRows:
			*row += k.nRegs + len(k.consts) - specialRows
		case *row >= constRows:
			*row += k.nRegs - constRows
		}
	}
	for i := range k.code {
		in := &k.code[i]
		if in.kind == kindBranch {
			target, ok := c.labels[in.label]
			if !ok || target >= len(k.code) {
				return fmt.Errorf("line %d: label %q", in.line, in.label)
			}
			in.target = target
		}
		for _, row := range []*int{&in.a, &in.b, &in.c, &in.d} {
			place(row)
		}
		for j := range in.vec {
			place(&in.vec[j])
		}
	}
	k.findMeetings()
	return nil
}
