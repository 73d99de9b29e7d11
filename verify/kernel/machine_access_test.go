package kernel

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

var errForm = errors.New("this form is not known")

// toUniform takes a value that all lanes have.
func toUniform(c *compiler, in *instr, _ modifiers, ops []string) error {
	if err := arithmetic(first0)(c, in, nil, ops); err != nil {
		return err
	}
	from, _, err := c.machineRow(ops[1], false)
	take := in.do
	in.do = func(w *warp, mask uint32) (int, error) {
		for lane := range lanes(mask) {
			if w.rows[from][lane] != w.rows[from][first(mask)] {
				return lane, errors.New("lanes have different values")
			}
		}
		return take(w, mask)
	}
	return err
}

// fromPredicates is P2R d, PR, a, mask: the predicates that mask names, and bits of a elsewhere.
func fromPredicates(c *compiler, in *instr, _ modifiers, ops []string) error {
	if len(ops) != 4 || ops[1] != "PR" {
		return errForm
	}
	mask, err := parseNumber(ops[3])
	if err != nil {
		return err
	}
	operands := []string{ops[0], ops[2]}
	for i := range uint64(7) {
		if mask>>i&1 != 0 {
			operands = append(operands, "P"+string(rune('0'+i)))
		}
	}
	return arithmetic(func(modifiers) func(*values) result {
		return func(s *values) result {
			v, next := s[0]&^mask, 1
			for i := range uint64(7) {
				if mask>>i&1 != 0 {
					v |= s[next] << i
					next++
				}
			}
			return result{value: v}
		}
	})(c, in, nil, operands)
}

// halves is HFMA2 d, -RZ, RZ, high, low, by which a constant is made of two halves of 16 bits, written as numbers.
func halves(c *compiler, in *instr, _ modifiers, ops []string) error {
	if len(ops) != 5 || ops[1] != "-RZ" || ops[2] != "RZ" {
		return errForm
	}
	v := uint64(0)
	for _, text := range ops[3:] {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		half := uint64(math.Abs(f) * (1 << 24)) // of the smallest halves
		if fraction, exponent := math.Frexp(math.Abs(f)); f != 0 && exponent > -14 {
			half = uint64((exponent+14)<<10) + uint64(fraction*2048) - 1024
		}
		if math.Signbit(f) {
			half |= 1 << 15
		}
		v = v<<16 | half
	}
	return arithmetic(first0)(c, in, nil, []string{ops[0], strconv.FormatUint(v, 10)})
}

var predicatePattern = regexp.MustCompile(`^U?P[0-6T]$`)

// arithmetic makes an instruction that computes its targets from its sources. Targets come first: a register and then
// predicates, or predicates and then, of LOP3, a register. Registers of the whole warp are computed once.
func arithmetic(of func(modifiers) func(*values) result) func(*compiler, *instr, modifiers, []string) error {
	return func(c *compiler, in *instr, m modifiers, ops []string) (err error) {
		wide, targets := m.wide(strings.TrimPrefix(in.opcode, "U")), []string{"PT", "PT"}
		next := 0
		register := func() (low, high int, err error) {
			next++
			return c.machineTarget(ops[next-1], strings.Contains(wide, "d"))
		}
		low, high, err := c.machineTarget("RZ", false)
		starts := predicatePattern.MatchString(ops[0])
		if !starts {
			low, high, err = register()
		}
		for i := 0; i < 2 && predicatePattern.MatchString(ops[next]); i, next = i+1, next+1 {
			targets[i] = ops[next]
		}
		if starts && strings.HasSuffix(in.opcode, "LOP3") && !strings.HasSuffix(in.opcode, "PLOP3") {
			low, high, err = register()
		}
		if err != nil || len(ops)-next > len(values{}) {
			return errors.Join(err, errForm)
		}
		var predicates [2]int
		for i := range targets {
			if predicates[i], _, err = c.machineTarget(targets[i], false); err != nil {
				return err
			}
		}
		var sources []operand
		for i, text := range ops[next:] {
			o, err := c.machineOperand(text, i < 3 && strings.Contains(wide, "abc"[i:i+1]))
			if err != nil {
				return err
			}
			sources = append(sources, o)
		}
		f, once := of(m), strings.HasPrefix(ops[0], "U")
		in.do = func(w *warp, mask uint32) (int, error) {
			s := &w.sources
			*s = values{}
			for lane := range lanes(mask) {
				for i := range sources {
					s[i] = sources[i].get(w, lane)
				}
				r := f(s)
				w.rows[high][lane] = r.value >> 32
				w.rows[low][lane] = r.value & math.MaxUint32
				w.rows[predicates[1]][lane] = bit(r.q)
				w.rows[predicates[0]][lane] = bit(r.p)
			}
			if once && mask != 0 {
				w.spread(first(mask), low, high, predicates[0], predicates[1])
			}
			return 0, nil
		}
		return nil
	}
}

// spread gives all lanes what one has: registers of the whole warp are rows as the others.
func (w *warp) spread(from int, rows ...int) {
	for _, row := range rows {
		for lane := range w.rows[row] {
			w.rows[row][lane] = w.rows[row][from]
		}
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// ---- Memory ----

// loadConstant reads the constant bank, at a place that is known or lies in a register.
func loadConstant(c *compiler, in *instr, m modifiers, ops []string) error {
	bank := bankPattern.FindStringSubmatch(ops[1])
	if bank == nil || bank[1] == "" {
		return arithmetic(first0)(c, in, m, ops)
	}
	base, _, err := c.machineRow(bank[1], false)
	if err != nil || m["64"] {
		return errors.Join(err, errForm)
	}
	dst, _, err := c.machineTarget(ops[0], false)
	offset, _ := parseNumber(bank[2])
	in.do = func(w *warp, mask uint32) (int, error) {
		for lane := range lanes(mask) {
			w.rows[dst][lane] = c.kernel.machine.constant(w.block, (w.rows[base][lane]+offset)&math.MaxUint32)
		}
		if mask != 0 && strings.HasPrefix(ops[0], "U") {
			w.spread(first(mask), dst)
		}
		return 0, nil
	}
	return err
}

var addressPattern = regexp.MustCompile(`^(?:desc\[UR\d+\])?\[(?:(R\w+)(?:\.(64|U32|X\d+))?)?\+?(UR\w+)?\+?(-?0x\w+)?\]$`)

// memoryAccess is a load or a store. What it adds up to an address is put into a row of its own.
func memoryAccess(c *compiler, in *instr, m modifiers, ops []string) error {
	a := access{store: strings.HasPrefix(in.opcode, "ST"), shared: strings.HasSuffix(in.opcode, "S"), size: 4}
	a.base = c.row("address", rowStart{})
	if len(ops) != 2 {
		return errForm
	}
	address, values := ops[1], ops[0]
	if a.store {
		address, values = ops[0], ops[1]
	}
	n := 1
	switch {
	case m["U8"]:
		a.size = 1
	case m["U16"]:
		a.size = 2
	case m["64"]:
		n = 2
	case m["128"]:
		n = 4
	}
	for i := range n {
		name := values
		if parts := registerPattern.FindStringSubmatch(values); parts != nil {
			number, _ := strconv.Atoi(parts[2])
			name = "R" + strconv.Itoa(number+i)
		}
		row, _, err := c.machineRow(name, false)
		if !a.store && err == nil {
			row, _, err = c.machineTarget(name, false)
		}
		if err != nil {
			return err
		}
		a.rows = append(a.rows, row)
	}
	parts := addressPattern.FindStringSubmatch(address)
	if parts == nil {
		return fmt.Errorf("the address %s is not known", address)
	}
	scale, bits := uint64(1), uint64(math.MaxUint64)
	if digits, ok := strings.CutPrefix(parts[2], "X"); ok {
		scale, _ = parseNumber(digits)
	}
	if a.shared {
		bits = math.MaxUint32
	}
	register, err := c.machineOperand(orZero(parts[1]), !a.shared && parts[2] != "U32")
	if err != nil {
		return err
	}
	uniform, err := c.machineOperand(orZero(parts[3]), !a.shared)
	if err != nil {
		return err
	}
	offset, err := parseNumber(orZero(parts[4]))
	in.do = func(w *warp, mask uint32) (int, error) {
		for lane := range lanes(mask) {
			w.rows[a.base][lane] = (register.get(w, lane)*scale + uniform.get(w, lane) + offset) & bits
		}
		return a.run(w, mask)
	}
	return err
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

// exchange is SHFL, which PTX has with the same operands, and the lanes that take part: here all.
func exchange(c *compiler, in *instr, m modifiers, ops []string) error {
	if len(ops) != 5 || len(m) != 1 {
		return errForm
	}
	for i, name := range ops[:4] { // so that they have rows
		if _, _, err := c.machineRow(name, false); err != nil && i < 3 {
			return err
		}
	}
	into := []string{ops[1], ops[0]}
	for i, name := range into {
		if registerPattern.FindString(name) == "" {
			into[i] = "lost"
			c.row("lost", rowStart{})
		}
	}
	for mode := range m {
		return buildShuffle(c, in, []string{"sync", strings.ToLower(mode), "b32"}, []string{strings.Join(into, "|"), ops[2], ops[3], ops[4], "-1"})
	}
	return nil
}

// ---- Flow ----

func flow(f flowKind) func(*compiler, *instr, modifiers, []string) error {
	return func(_ *compiler, in *instr, _ modifiers, _ []string) error {
		in.flow = f
		return nil
	}
}

// branch is BRA with, before the label, maybe a condition beside the guard's.
func branch(c *compiler, in *instr, _ modifiers, ops []string) error {
	in.flow, in.label = flowBranch, strings.Trim(ops[len(ops)-1], "`()")
	for _, condition := range ops[:len(ops)-1] {
		if err := c.guard(in, condition); err != nil {
			return err
		}
	}
	return nil
}

// noteLanes is BSSY: a barrier register gets the lanes that are here.
func noteLanes(c *compiler, in *instr, _ modifiers, ops []string) error {
	row, _, err := c.machineRow(ops[0], false)
	in.do = func(w *warp, mask uint32) (int, error) {
		for lane := range lanes(mask) {
			w.rows[row][lane] = uint64(mask)
		}
		return 0, nil
	}
	return err
}

// meet is BSYNC, which waits for the lanes of a barrier register, or WARPSYNC, which waits for those of a mask.
func meet(c *compiler, in *instr, m modifiers, ops []string) error {
	text := ops[0]
	if m["ALL"] {
		text = "-1"
	}
	o, err := c.machineOperand(text, false)
	in.flow, in.meet = flowMeet, o.low
	return err
}

// leave is BREAK: other lanes no longer wait for these.
func leave(c *compiler, in *instr, _ modifiers, ops []string) error {
	row, _, err := c.machineRow(ops[0], false)
	in.do = func(w *warp, mask uint32) (int, error) {
		for lane := range w.rows[row] {
			w.rows[row][lane] &^= uint64(mask)
		}
		return 0, nil
	}
	return err
}

// moveLanes is BMOV: a barrier register is kept in another register, or comes from there.
func moveLanes(c *compiler, in *instr, m modifiers, ops []string) error {
	dst, _, err := c.machineTarget(ops[0], false)
	if err != nil {
		return err
	}
	src, err := c.machineOperand(ops[1], false)
	in.do = func(w *warp, mask uint32) (int, error) {
		for lane := range lanes(mask) {
			w.rows[dst][lane] = src.get(w, lane)
			if m["CLEAR"] {
				w.rows[src.low][lane] = 0
			}
		}
		return 0, nil
	}
	return err
}
