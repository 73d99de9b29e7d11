package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	targetPattern = regexp.MustCompile(`(?m)^\s*\.target\s+sm_(\d+)|\bEF_CUDA_SM(\d+)`)
	// What a section .nv.info tells of a parameter: its number, place and size, the latter from bit 18 on; and of all, their place.
	paramPattern     = regexp.MustCompile(`EIATTR_KPARAM_INFO(?s:.*?)\.short\s+(0x\w+)\s*\n[^\n]*\.short\s+(0x\w+)\s*\n[^\n]*\.byte\s+(0x\w+), (0x\w+), (0x\w+), (0x\w+)`)
	paramBasePattern = regexp.MustCompile(`\.nv\.constant0\.\w+\)\s*\n[^\n]*\.short\s+(0x\w+)`)
	linePattern      = regexp.MustCompile(`^\s*/\*[0-9a-f]{4,}\*/\s+(?:@(!?)(\w+)\s+)?([\w.]+)\s*([^;]*);`)
	labelPattern     = regexp.MustCompile(`^(\.L_x_\d+):`)
	registerPattern  = regexp.MustCompile(`^(?:U?([RPB])(\d+)|Rpc\.LO)$`)
	bankPattern      = regexp.MustCompile(`^c\[0x0\]\[(?:(\w+)\+)?(0x\w+)\]$`)
)

// parseMachine reads the listing that nvdisasm prints of a cubin.
func parseMachine(listing string) (*module, error) {
	m := &module{kernels: map[string]*entryPoint{}}
	parts := targetPattern.FindStringSubmatch(listing)
	if parts == nil {
		return nil, errors.New("machine code: no target")
	}
	target := parts[1] + parts[2]
	infos, line := map[string]*machine{}, 1
	for _, section := range strings.Split(listing, "\t.section\t") {
		name, _, _ := strings.Cut(section, ",")
		if kernel, ok := strings.CutPrefix(name, ".nv.info."); ok {
			infos[kernel] = machineInfo(section, target)
		}
		if kernel, ok := strings.CutPrefix(name, ".text."); ok {
			c := newCompiler(m, kernel)
			c.kernel.machine = cmp.Or(infos[kernel], new(machine))
			c.kernel.nParams = len(c.kernel.machine.params)
			if err := c.listing(section, line); err != nil {
				return nil, fmt.Errorf("machine code: sm_%s, %s, %w", target, kernel, err)
			}
			m.kernels[kernel] = c.kernel
		}
		line += strings.Count(section, "\n")
	}
	return m, nil
}

func machineInfo(section, target string) *machine {
	number := func(s string) uint64 { v, _ := strconv.ParseUint(s, 0, 32); return v } // they are: the patterns say so
	m := &machine{}
	m.target, _ = strconv.Atoi(target)
	if base := paramBasePattern.FindStringSubmatch(section); base != nil {
		m.paramBase = number(base[1])
	}
	for _, p := range paramPattern.FindAllStringSubmatch(section, -1) {
		param := machineParam{at: number(p[2]), size: (number(p[5])<<16 | number(p[6])<<24) >> 18}
		m.params = append(m.params, param)
	}
	slices.SortFunc(m.params, func(a, b machineParam) int { return cmp.Compare(a.at, b.at) })
	return m
}

// listing reads the instructions of a kernel. line is the number of the first line.
func (c *compiler) listing(section string, line int) error {
	for name, v := range map[string]uint64{"RZ": 0, "URZ": 0, "SRZ": 0, "PT": 1, "UPT": 1} {
		c.rows[name] = c.constant(v)
	}
	for text := range strings.Lines(section) {
		if label := labelPattern.FindStringSubmatch(text); label != nil {
			c.labels[label[1]] = len(c.kernel.code)
		}
		if words := linePattern.FindStringSubmatch(text); words != nil {
			in := instr{opcode: strings.Split(words[3], ".")[0], line: line}
			if err := c.machineInstruction(&in, words); err != nil {
				return fmt.Errorf("line %d: %s: %w", line, strings.TrimSpace(words[0]), err)
			}
			c.kernel.code = append(c.kernel.code, in)
		}
		line++
	}
	for i := range c.kernel.code {
		in := &c.kernel.code[i]
		target, ok := c.labels[in.label]
		if in.flow != flowBranch {
			continue
		} else if !ok {
			return fmt.Errorf("line %d: label %q", in.line, in.label)
		}
		in.target = target
	}
	return nil
}

func (c *compiler) machineInstruction(in *instr, words []string) error {
	if words[2] != "" {
		if err := c.guard(in, words[1]+words[2]); err != nil {
			return err
		}
	}
	ops := strings.Split(strings.ReplaceAll(words[4], ".reuse", ""), ",")
	for i := range ops {
		ops[i] = strings.TrimSpace(ops[i])
	}
	name, mods, _ := strings.Cut(words[3], ".")
	op, ok := machineOpcodes[name]
	if !ok {
		op, ok = machineOpcodes[strings.TrimPrefix(name, "U")]
	}
	if !ok {
		return errors.New("the opcode is not known")
	}
	m := modifiers{}
	for mod := range strings.SplitSeq(mods, ".") {
		if mod == "" {
			continue
		}
		if !slices.Contains(strings.Fields(op.modifiers), mod) {
			return fmt.Errorf("the modifier %s is not known", mod)
		}
		m[mod] = true
	}
	return op.build(c, in, m, ops)
}

// guard adds a condition, "P0" or "!P0".
func (c *compiler) guard(in *instr, text string) error {
	name, negated := strings.CutPrefix(text, "!")
	o, err := c.machineOperand(name, false)
	g := guard{row: o.low, want: 1}
	if negated {
		g.want = 0
	}
	in.guards = append(in.guards, g)
	return err
}

// machineRow returns the row of a register, and the one of its upper half where it is wide.
func (c *compiler) machineRow(name string, wide bool) (low, high int, err error) {
	parts := registerPattern.FindStringSubmatch(name)
	if parts == nil {
		row, ok := c.rows[name]
		if !ok {
			return 0, 0, fmt.Errorf("the operand %q is not known", name)
		}
		return row, c.constant(0), nil
	}
	start := rowStart{mask: math.MaxUint32}
	if parts[1] == "P" {
		start.mask = 1
	}
	low, high = c.row(name, start), c.constant(0)
	if wide {
		n, _ := strconv.Atoi(parts[2])
		high = c.row(strings.TrimSuffix(name, parts[2])+strconv.Itoa(n+1), start)
	}
	return low, high, nil
}

// machineTarget is machineRow of a register to write. What goes to RZ and PT is lost.
func (c *compiler) machineTarget(name string, wide bool) (low, high int, err error) {
	lost := c.row("lost", rowStart{})
	if _, ok := c.rows[name]; ok && registerPattern.FindString(name) == "" {
		return lost, lost, nil
	}
	low, high, err = c.machineRow(name, wide)
	if !wide {
		high = lost
	}
	return low, high, err
}

// operand is a value to read: a register, constant or special register, or two of them, low half first.
type operand struct {
	low, high int
	flip, add uint64 // -x is ^x + 1, which may carry, ~x is ^x, and !p is p^1
}

func (o *operand) get(w *warp, lane int) uint64 {
	return (w.rows[o.low][lane] | w.rows[o.high][lane]<<32) ^ o.flip + o.add
}

func (c *compiler) machineOperand(text string, wide bool) (o operand, err error) {
	bits := uint64(math.MaxUint32)
	if wide {
		bits = math.MaxUint64
	}
	v, numberErr := parseNumber(text)
	name := strings.TrimLeft(text, "!-~")
	bank := bankPattern.FindStringSubmatch(name)
	switch prefix := strings.TrimSuffix(text, name); {
	case numberErr == nil:
		v &= bits
		o.low, o.high = c.constant(v&math.MaxUint32), c.constant(v>>32)
		return o, nil
	case prefix == "-":
		o.flip, o.add = bits, 1
	case prefix == "~":
		o.flip = bits
	case prefix == "!":
		o.flip = 1
	case prefix != "":
		return o, fmt.Errorf("the operand %q is not known", text)
	}
	switch special, ok := machineSpecials[name]; {
	case bank != nil && bank[1] == "":
		at, _ := parseNumber(bank[2])
		o.low, o.high = c.bank(at), c.constant(0)
		if wide {
			o.high = c.bank(at + 4)
		}
	case ok:
		o.low, o.high = c.row(name, rowStart{of: special}), c.constant(0)
	default:
		o.low, o.high, err = c.machineRow(name, wide)
	}
	return o, err
}

// bank returns the row of a word of the constant bank.
func (c *compiler) bank(at uint64) int {
	m := c.kernel.machine
	return c.row("bank "+strconv.FormatUint(at, 16), rowStart{of: func(b *block, _ int) uint64 { return m.constant(b, at) }})
}

var machineSpecials = map[string]func(b *block, thread int) uint64{
	"SR_TID.X":    specialRegisters["%tid.x"],
	"SR_CTAID.X":  specialRegisters["%ctaid.x"],
	"SR_CgaCtaId": func(*block, int) uint64 { return 0 }, // of clusters of one block
	"SR_CgaSize":  func(*block, int) uint64 { return 1 },
}
