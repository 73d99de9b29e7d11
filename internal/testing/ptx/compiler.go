package ptx

import (
	"strconv"
	"strings"
)

// instr is one instruction.
type instr struct {
	opcode string
	line   int
	guards []guard // if one doesn't hold for a lane, the lane does nothing
	flow   flowKind
	label  string // label of a branch
	target int    // target of a branch
	meet   int    // where the lanes that a branch splits meet again

	// do runs the instruction for the lanes in mask. It returns an error with the lane at fault.
	// It's nil for an instruction that only controls the flow.
	do func(w *warp, mask uint32) (lane int, err error)
}

// guard is a row of a predicate and the value it must have.
type guard struct {
	row  int
	want uint64
}

// flowKind says where a warp goes after an instruction.
type flowKind uint8

const (
	flowNext flowKind = iota
	flowBranch
	flowReturn
	flowBarrier
)

// rowStart is what a row of a warp's registers holds when a block starts: the value of returns, or,
// if of is nil, noise in the bits of mask. Constants, special registers, and parameters are rows
// that no instruction writes. A predicate is a row of zeros and ones.
type rowStart struct {
	mask uint64
	of   func(b *block, thread int) uint64
}

// specialRegisters are the readable special registers, as functions of the thread's number in its
// block.
var specialRegisters = map[string]func(b *block, thread int) uint64{
	"%tid.x":             func(_ *block, thread int) uint64 { return uint64(thread) },
	"%ntid.x":            func(b *block, _ int) uint64 { return uint64(b.launch.Block) },
	"%ctaid.x":           func(b *block, _ int) uint64 { return uint64(b.index) },
	"%nctaid.x":          func(b *block, _ int) uint64 { return uint64(b.launch.Grid) },
	"%dynamic_smem_size": func(b *block, _ int) uint64 { return uint64(b.launch.SharedBytes) },
}

// compiler turns a kernel's statements into instructions.
type compiler struct {
	kernel *Kernel
	// by the operand as written; "#" and the value for constants, "[name]" for parameters
	rows   map[string]int
	labels map[string]int
}

func newCompiler(m *Module, name string) *compiler {
	c := &compiler{kernel: &Kernel{name: name}, rows: map[string]int{}, labels: map[string]int{}}
	for _, shared := range m.shared {
		c.rows[shared] = c.constant(0)
	}
	return c
}

// row returns the row of an operand. It adds a row for a new operand.
func (c *compiler) row(operand string, start rowStart) int {
	row, ok := c.rows[operand]
	if !ok {
		row = len(c.kernel.rows)
		c.rows[operand] = row
		c.kernel.rows = append(c.kernel.rows, start)
	}
	return row
}

func (c *compiler) constant(v uint64) int {
	return c.row("#"+strconv.FormatUint(v, 10), rowStart{of: func(*block, int) uint64 { return v }})
}

func (c *compiler) param(name string, t typ) {
	i := c.kernel.nParams
	c.row("["+name+"]", rowStart{of: func(b *block, _ int) uint64 { return b.launch.Args[i] & t.mask() }})
	c.kernel.nParams++
}

// registers reads ".b32 %r<10>" or ".pred p, q".
func (c *compiler) registers(words []string) {
	t := parseType(strings.TrimPrefix(words[0], "."))
	for _, name := range operands(words[1:]) {
		prefix, count, numbered := strings.Cut(strings.TrimSuffix(name, ">"), "<")
		if !numbered {
			c.row(name, rowStart{mask: t.mask()})
			continue
		}
		for i := range int(parseNumber(count)) {
			c.row(prefix+strconv.Itoa(i), rowStart{mask: t.mask()})
		}
	}
}

// instruction compiles "@!%p1 opcode a, b, c".
func (c *compiler) instruction(words []string, line int) {
	in := instr{line: line}
	if words[0] == "@" {
		words = words[1:]
		g := guard{want: 1}
		if words[0] == "!" {
			g.want, words = 0, words[1:]
		}
		g.row = c.register(words[0])
		in.guards, words = append(in.guards, g), words[1:]
	}
	in.opcode = words[0]
	name, modifiers, _ := strings.Cut(in.opcode, ".")
	build := opcodes[name]
	if build == nil {
		unsupported("instruction %q", in.opcode)
	}
	build(c, &in, strings.Split(modifiers, "."), operands(words[1:]))
	c.kernel.code = append(c.kernel.code, in)
}

// operands joins the words between commas. Commas in braces don't separate operands.
func operands(words []string) []string {
	var list []string
	operand, depth := "", 0
	for _, w := range words {
		switch w {
		case "{":
			depth++
		case "}":
			depth--
		}
		if w == "," && depth == 0 {
			list, operand = append(list, operand), ""
			continue
		}
		operand += w
	}
	if operand != "" {
		list = append(list, operand)
	}
	return list
}

// source returns the row of an operand to read: a name, or a constant of type t.
func (c *compiler) source(operand string, t typ) int {
	if row, ok := c.rows[operand]; ok {
		return row
	}
	if of := specialRegisters[operand]; of != nil {
		return c.row(operand, rowStart{of: of})
	}
	return c.constant(parseNumber(operand) & t.mask())
}

// sources returns the rows of operands of type t.
func (c *compiler) sources(operands []string, t typ) (rows []int) {
	for _, operand := range operands {
		rows = append(rows, c.source(operand, t))
	}
	return rows
}

// register returns the row of a register or predicate.
func (c *compiler) register(name string) int {
	row, ok := c.rows[name]
	if !ok || c.kernel.rows[row].of != nil {
		unsupported("register %q", name)
	}
	return row
}

// finish finds the targets of branches.
func (c *compiler) finish() {
	code := c.kernel.code
	for i := range code {
		if code[i].flow != flowBranch {
			continue
		}
		target, ok := c.labels[code[i].label]
		if !ok || target >= len(code) {
			unsupported("label %q of line %d", code[i].label, code[i].line)
		}
		code[i].target = target
	}
	c.kernel.findMeetings()
}
