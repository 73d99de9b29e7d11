package ptx

import (
	"errors"
	"fmt"
	"math/bits"
)

// buildFunc compiles one opcode from its modifiers and operands.
type buildFunc func(c *compiler, in *instr, mods []string, ops []operand) error

// opcodes are the instructions that the interpreter knows.
var opcodes = map[string]buildFunc{
	"add": arith(func(t typ) eval { m := t.mask(); return func(a, b, _ uint64) uint64 { return (a + b) & m } }),
	"sub": arith(func(t typ) eval { m := t.mask(); return func(a, b, _ uint64) uint64 { return (a - b) & m } }),
	"and": arith(func(typ) eval { return func(a, b, _ uint64) uint64 { return a & b } }),
	"or":  arith(func(typ) eval { return func(a, b, _ uint64) uint64 { return a | b } }),
	"xor": arith(func(typ) eval { return func(a, b, _ uint64) uint64 { return a ^ b } }),
	"not": arith(func(t typ) eval { m := t.mask(); return func(a, _, _ uint64) uint64 { return ^a & m } }),
	"neg": arith(func(t typ) eval { m := t.mask(); return func(a, _, _ uint64) uint64 { return -a & m } }),
	"mov": buildMov,
	"cvt": buildCvt, "cvta": buildCvta,
	"min": arith(minimum), "max": arith(maximum),
	"rem": arith(remainder), "div": arith(quotient),
	"shl": arith(shiftLeft), "shr": arith(shiftRight), "shf": buildFunnel,
	"mul": buildMul, "mad": buildMad,
	"popc": arith(func(typ) eval { return func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) } }),
	"clz": arith(func(t typ) eval {
		return func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(a) - 64 + t.bits) }
	}),
	"bfe": arith(extractField), "bfi": buildInsertField, "prmt": arith(func(typ) eval { return permute }),
	"setp": buildSetp, "selp": buildSelp,
	"ld": buildLoad, "st": buildStore,
	"bra": buildBranch, "ret": buildReturn, "exit": buildReturn,
	"bar": buildBarrier, "barrier": buildBarrier, "shfl": buildShuffle,
}

type eval = func(a, b, c uint64) uint64

// arith is an instruction whose last modifier is its type: up to three sources, one destination. On
// predicates it works on whole warps at once.
func arith(of func(typ) eval) buildFunc {
	return func(c *compiler, in *instr, mods []string, ops []operand) error {
		t, err := lastType(mods)
		if err != nil {
			return err
		}
		if t.bits == 1 {
			return c.predicates(in, of(typ{64, false}), ops)
		}
		in.kind, in.eval = kindALU, of(t)
		return c.alu(in, t, ops)
	}
}

// lastType reads the type at the end of an opcode.
func lastType(mods []string) (typ, error) {
	if len(mods) == 0 {
		return typ{}, errors.New("no type")
	}
	return parseType(mods[len(mods)-1])
}

// alu takes a destination and the sources, all of type t.
func (c *compiler) alu(in *instr, t typ, ops []operand) (err error) {
	if len(ops) < 2 || len(ops) > 4 {
		return errors.New("wrong number of operands")
	}
	if in.dst, err = c.dest(ops[0]); err != nil {
		return err
	}
	return c.values(ops[1:], t, []*int{&in.a, &in.b, &in.c}[:len(ops)-1]...)
}

// predicates compiles and.pred and its like; mov.pred has an immediate.
func (c *compiler) predicates(in *instr, f eval, ops []operand) (err error) {
	in.kind = kindPred
	in.onMasks = func(a, b uint32) uint32 { return uint32(f(uint64(a), uint64(b), 0)) }
	if len(ops) < 2 || len(ops) > 3 {
		return errors.New("wrong number of operands")
	}
	if in.dst, err = c.pred(ops[0]); err != nil {
		return err
	}
	for i, p := range []*int{&in.a, &in.b}[:len(ops)-1] {
		if *p, err = c.pred(ops[1+i]); err != nil {
			return err
		}
	}
	return nil
}

// buildMov copies, also predicates, and packs or unpacks "{a, b}".
func buildMov(c *compiler, in *instr, mods []string, ops []operand) error {
	t, err := lastType(mods)
	if err != nil || len(ops) != 2 {
		return errors.New("type or operands")
	}
	if t.bits > 1 {
		in.kind, in.eval = kindALU, func(a, _, _ uint64) uint64 { return a }
		return c.alu(in, t, ops)
	}
	if v := ops[1].words; v[0] == "-" || '0' <= v[0][0] && v[0][0] <= '9' {
		mask := uint32(0)
		if v[len(v)-1] != "0" {
			mask = allLanes
		}
		in.kind, in.onMasks = kindPred, func(_, _ uint32) uint32 { return mask }
		in.dst, err = c.pred(ops[0])
		return err
	}
	return c.predicates(in, func(a, _, _ uint64) uint64 { return a }, ops)
}

// buildCvt converts between integer types.
func buildCvt(c *compiler, in *instr, mods []string, ops []operand) error {
	if len(mods) != 2 {
		return errors.New("only plain integer conversions are supported")
	}
	to, err := parseType(mods[0])
	if err != nil {
		return err
	}
	from, err := parseType(mods[1])
	if err != nil {
		return err
	}
	in.kind, in.eval = kindALU, func(a, _, _ uint64) uint64 { return uint64(from.extend(a)) & to.mask() }
	return c.alu(in, from, ops)
}

// buildCvta takes addresses of global memory as they are, in both directions. Accesses through generic
// addresses are not supported.
func buildCvta(c *compiler, in *instr, mods []string, ops []operand) error {
	if len(mods) < 2 || mods[len(mods)-2] != "global" {
		return errors.New("only addresses of global memory are supported")
	}
	in.kind, in.eval = kindALU, func(a, _, _ uint64) uint64 { return a }
	return c.alu(in, types["u64"], ops)
}

func minimum(t typ) eval {
	return func(a, b, _ uint64) uint64 {
		if t.signed && t.extend(a) < t.extend(b) || !t.signed && a < b {
			return a
		}
		return b
	}
}

func maximum(t typ) eval {
	low := minimum(t)
	return func(a, b, _ uint64) uint64 { return a ^ b ^ low(a, b, 0) }
}

func remainder(t typ) eval {
	return func(a, b, _ uint64) uint64 {
		switch {
		case b == 0:
			return t.mask() // unspecified on a GPU
		case t.signed:
			return uint64(t.extend(a)%t.extend(b)) & t.mask()
		}
		return a % b
	}
}

func quotient(t typ) eval {
	return func(a, b, _ uint64) uint64 {
		switch {
		case b == 0:
			return t.mask()
		case t.signed:
			return uint64(t.extend(a)/t.extend(b)) & t.mask()
		}
		return a / b
	}
}

// Shift counts are not taken modulo the width: Go's rule is that of PTX.
func shiftLeft(t typ) eval {
	m := t.mask()
	return func(a, b, _ uint64) uint64 { return a << uint32(b) & m }
}

func shiftRight(t typ) eval {
	m := t.mask()
	return func(a, b, _ uint64) uint64 {
		if t.signed {
			return uint64(t.extend(a)>>uint32(b)) & m
		}
		return a >> uint32(b)
	}
}

// buildFunnel is shf.l and shf.r: the upper or lower word of the shifted pair b:a.
func buildFunnel(c *compiler, in *instr, mods []string, ops []operand) error {
	if len(mods) != 3 || mods[2] != "b32" {
		return errors.New("form of shf is not supported")
	}
	clamp := mods[1] == "clamp"
	count := func(n uint64) uint64 {
		if clamp {
			return min(n, 32)
		}
		return n & 31
	}
	in.kind = kindALU
	switch mods[0] {
	case "l":
		in.eval = func(a, b, n uint64) uint64 { return (b<<32 | a) << count(n) >> 32 }
	case "r":
		in.eval = func(a, b, n uint64) uint64 { return (b<<32 | a) >> count(n) & 0xffffffff }
	default:
		return errors.New("direction of shf")
	}
	return c.alu(in, types["b32"], ops)
}

// product gives the function of mul.lo, mul.hi and mul.wide.
func product(mode string, t typ) (eval, error) {
	m := t.mask()
	switch {
	case mode == "lo":
		return func(a, b, _ uint64) uint64 { return a * b & m }, nil
	case mode == "wide" && t.bits < 64:
		m = t.wide().mask()
		return func(a, b, _ uint64) uint64 { return uint64(t.extend(a)*t.extend(b)) & m }, nil
	case mode == "hi" && t.bits < 64:
		return func(a, b, _ uint64) uint64 { return uint64(t.extend(a)*t.extend(b)) >> t.bits & m }, nil
	case mode == "hi" && !t.signed:
		return func(a, b, _ uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }, nil
	}
	return nil, errors.New("form of the product is not supported")
}

func buildMul(c *compiler, in *instr, mods []string, ops []operand) error {
	t, err := lastType(mods)
	if err != nil {
		return err
	}
	in.kind = kindALU
	if in.eval, err = product(mods[0], t); err != nil {
		return err
	}
	return c.alu(in, t, ops)
}

// buildMad adds c, which has the width of the result.
func buildMad(c *compiler, in *instr, mods []string, ops []operand) error {
	t, err := lastType(mods)
	if err != nil {
		return err
	}
	mul, err := product(mods[0], t)
	if err != nil {
		return err
	}
	m := t.mask()
	if mods[0] == "wide" {
		m = t.wide().mask()
	}
	in.kind, in.eval = kindALU, func(a, b, c uint64) uint64 { return (mul(a, b, 0) + c) & m }
	return c.alu(in, t, ops)
}

// extractField is bfe: c bits of a from bit b on.
func extractField(t typ) eval {
	return func(a, b, c uint64) uint64 { return a >> (b & 255) & (1<<min(c&255, 64) - 1) }
}

// buildInsertField is bfi: b with d bits of a put in at bit c.
func buildInsertField(c *compiler, in *instr, mods []string, ops []operand) error {
	t, err := lastType(mods)
	if err != nil || len(ops) != 5 {
		return errors.New("type or operands")
	}
	n := ops[4].words
	if len(n) != 1 {
		return errors.New("only a constant length is supported")
	}
	length, err := parseNumber(n[0])
	if err != nil {
		return err
	}
	m := t.mask()
	field := uint64(1)<<min(length, 64) - 1
	in.kind = kindALU
	in.eval = func(a, b, pos uint64) uint64 { return (b&^(field<<(pos&255)) | a&field<<(pos&255)) & m }
	return c.alu(in, t, ops[:4])
}

// permute is prmt: four bytes of b:a, each chosen by a nibble of c.
func permute(a, b, c uint64) uint64 {
	v, r := b<<32|a, uint64(0)
	for i := range 4 {
		n := c >> (4 * i) & 15
		x := v >> (8 * (n & 7)) & 255
		if n&8 != 0 {
			x = uint64(int8(x)>>7) & 255
		}
		r |= x << (8 * i)
	}
	return r
}

// comparison gives the function of a setp.
func comparison(op string, t typ) (eval, error) {
	less := func(a, b uint64) bool {
		if t.signed {
			return t.extend(a) < t.extend(b)
		}
		return a < b
	}
	is := func(f func(a, b uint64) bool) eval {
		return func(a, b, _ uint64) uint64 {
			if f(a, b) {
				return 1
			}
			return 0
		}
	}
	switch op {
	case "eq":
		return is(func(a, b uint64) bool { return a == b }), nil
	case "ne":
		return is(func(a, b uint64) bool { return a != b }), nil
	case "lt", "lo":
		return is(less), nil
	case "ge", "hs":
		return is(func(a, b uint64) bool { return !less(a, b) }), nil
	case "gt", "hi":
		return is(func(a, b uint64) bool { return less(b, a) }), nil
	case "le", "ls":
		return is(func(a, b uint64) bool { return !less(b, a) }), nil
	}
	return nil, fmt.Errorf("comparison %q", op)
}

// buildSetp is setp.cmp.type p, a, b or setp.cmp.bool.type p, a, b, q.
func buildSetp(c *compiler, in *instr, mods []string, ops []operand) error {
	t, err := lastType(mods)
	if err != nil || len(mods) < 2 || len(ops) != len(mods)+1 {
		return errors.New("type or operands")
	}
	in.kind, in.d = kindSetp, -1
	if in.eval, err = comparison(mods[0], t); err != nil {
		return err
	}
	if len(mods) == 3 {
		joins := map[string]func(a, b uint32) uint32{
			"and": func(a, b uint32) uint32 { return a & b },
			"or":  func(a, b uint32) uint32 { return a | b },
			"xor": func(a, b uint32) uint32 { return a ^ b },
		}
		if in.onMasks = joins[mods[1]]; in.onMasks == nil {
			return fmt.Errorf("modifier %q", mods[1])
		}
		if in.d, err = c.pred(ops[3]); err != nil {
			return err
		}
	}
	if in.dst, err = c.pred(ops[0]); err != nil {
		return err
	}
	return c.values(ops[1:3], t, &in.a, &in.b)
}

func buildSelp(c *compiler, in *instr, mods []string, ops []operand) error {
	t, err := lastType(mods)
	if err != nil || len(ops) != 4 {
		return errors.New("type or operands")
	}
	in.kind = kindSelp
	if in.d, err = c.pred(ops[3]); err != nil {
		return err
	}
	return c.alu(in, t, ops[:3])
}
