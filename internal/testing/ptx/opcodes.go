package ptx

import (
	"math"
	"math/bits"
	"slices"
	"strings"
)

// typ is an operand type: its width, and whether it's signed.
type typ struct {
	bits   int
	signed bool
}

var types = map[string]typ{
	"pred": {1, false},
	"b8":   {8, false}, "u8": {8, false}, "s8": {8, true},
	"b16": {16, false}, "u16": {16, false}, "s16": {16, true},
	"b32": {32, false}, "u32": {32, false}, "s32": {32, true},
	"b64": {64, false}, "u64": {64, false}, "s64": {64, true},
}

func parseType(s string) typ {
	t, ok := types[s]
	if !ok {
		unsupported("type %q", s)
	}
	return t
}

// lastType reads the type at the end of an opcode.
func lastType(mods []string) typ { return parseType(mods[len(mods)-1]) }

// mask has the type's bits set.
func (t typ) mask() uint64 { return ^uint64(0) >> (64 - t.bits) }

// extend widens a value to 64 bits, with its sign if the type has one.
func (t typ) extend(v uint64) int64 {
	s := 64 - t.bits
	if t.signed {
		return int64(v<<s) >> s
	}
	return int64(v & t.mask())
}

// less compares two values of the type.
func (t typ) less(a, b uint64) bool {
	if t.signed {
		return t.extend(a) < t.extend(b)
	}
	return a < b
}

// A builder compiles one opcode from its modifiers and operands.
type builder = func(c *compiler, in *instr, mods, ops []string)

// eval computes the result of an instruction from its sources.
type eval = func(a, b, c uint64) uint64

// opcodes are the instructions that the interpreter knows.
var opcodes = map[string]builder{
	"and": arith(func(typ) eval { return func(a, b, _ uint64) uint64 { return a & b } }),
	"or":  arith(func(typ) eval { return func(a, b, _ uint64) uint64 { return a | b } }),
	"xor": arith(func(typ) eval { return func(a, b, _ uint64) uint64 { return a ^ b } }),
	"not": arith(func(t typ) eval { m := t.mask(); return func(a, _, _ uint64) uint64 { return ^a & m } }),
	"add": arith(func(t typ) eval { m := t.mask(); return func(a, b, _ uint64) uint64 { return (a + b) & m } }),
	"sub": arith(func(t typ) eval { m := t.mask(); return func(a, b, _ uint64) uint64 { return (a - b) & m } }),
	"neg": arith(func(t typ) eval { m := t.mask(); return func(a, _, _ uint64) uint64 { return -a & m } }),
	"min": arith(minimum),
	"max": arith(maximum),
	"shl": arith(shiftLeft),
	"shr": arith(shiftRight),
	"bfe": arith(extractField),
	"clz": arith(func(t typ) eval {
		return func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(a) - 64 + t.bits) }
	}),
	"popc": arith(func(typ) eval { return func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) } }),
	"prmt": arith(func(typ) eval { return permute }),
	"selp": arith(func(typ) eval { return choose }),
	"mov":  buildMove,
	"cvta": buildGlobalAddress, "cvt": buildConvert,
	"mul": buildMultiply, "mad": buildMultiply, "shf": buildFunnel, "lop3": buildLogic, "bfi": buildInsertField, "setp": buildCompare,
	"ld": buildLoad, "st": buildStore, "shfl": buildShuffle, "vote": buildBallot,
	"bra": buildBranch, "ret": buildReturn, "bar": buildBarrier,
}

// arith returns the builder of an instruction whose operands all have the type at the end of its
// opcode.
func arith(of func(typ) eval) builder {
	return func(c *compiler, in *instr, mods, ops []string) {
		t := lastType(mods)
		c.compute(in, of(t), t, ops)
	}
}

// compute makes in set its first operand to f of up to three others of type t.
func (c *compiler) compute(in *instr, f eval, t typ, ops []string) {
	dst, src := c.register(ops[0]), c.sources(ops[1:], t)
	src = append(src, src[0], src[0]) // at least three
	in.do = func(w *warp, mask uint32) (int, error) {
		dst, a, b, c := &w.rows[dst], &w.rows[src[0]], &w.rows[src[1]], &w.rows[src[2]]
		for lane := range lanes(mask) {
			dst[lane] = f(a[lane], b[lane], c[lane])
		}
		return 0, nil
	}
}

func same(a, _, _ uint64) uint64 { return a }

// buildMove builds mov.b64 {low, high}, a, which splits a register, or mov of any type.
func buildMove(c *compiler, in *instr, mods, ops []string) {
	low, high, parts := strings.Cut(strings.Trim(ops[0], "{}"), ",")
	if !parts {
		c.compute(in, same, lastType(mods), ops)
		return
	}
	var lower, upper instr
	c.compute(&lower, func(a, _, _ uint64) uint64 { return a & math.MaxUint32 }, types["b64"], []string{low, ops[1]})
	c.compute(&upper, func(a, _, _ uint64) uint64 { return a >> 32 }, types["b64"], []string{high, ops[1]})
	in.do = func(w *warp, mask uint32) (int, error) {
		_, _ = lower.do(w, mask) // compute's instructions have no errors
		return upper.do(w, mask)
	}
}

func choose(a, b, p uint64) uint64 {
	if p != 0 {
		return a
	}
	return b
}

// buildGlobalAddress leaves addresses of global memory as they are, in both directions. Accesses
// through generic addresses aren't supported.
func buildGlobalAddress(c *compiler, in *instr, mods, ops []string) {
	if !slices.Contains(mods, "global") {
		unsupported("address of other than global memory")
	}
	c.compute(in, same, types["u64"], ops)
}

// buildConvert converts between integer types.
func buildConvert(c *compiler, in *instr, mods, ops []string) {
	to, from := parseType(mods[0]), lastType(mods)
	c.compute(in, func(a, _, _ uint64) uint64 { return uint64(from.extend(a)) & to.mask() }, from, ops)
}

func minimum(t typ) eval {
	return func(a, b, _ uint64) uint64 {
		if t.less(a, b) {
			return a
		}
		return b
	}
}

func maximum(t typ) eval {
	low := minimum(t)
	return func(a, b, _ uint64) uint64 { return a ^ b ^ low(a, b, 0) }
}

// Shift counts aren't taken modulo the width: Go's rule is the same as PTX's.
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

// extractField is bfe: c bits of a, from bit b on.
func extractField(typ) eval {
	return func(a, b, c uint64) uint64 { return a >> (b & 255) & (1<<min(c&255, 64) - 1) }
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

// buildFunnel is shf.l: the upper word of b:a shifted left.
func buildFunnel(c *compiler, in *instr, mods, ops []string) {
	if mods[0] != "l" || mods[1] != "clamp" && mods[1] != "wrap" {
		unsupported("shf.%s", strings.Join(mods, "."))
	}
	f := func(a, b, n uint64) uint64 {
		if mods[1] == "wrap" {
			n &= 31
		}
		return (b<<32 | a) << min(n, 32) >> 32
	}
	c.compute(in, f, types["b32"], ops)
}

// buildLogic is lop3.b32 d, a, b, c, table.
func buildLogic(c *compiler, in *instr, _, ops []string) {
	table := parseNumber(ops[4])
	c.compute(in, func(x, y, z uint64) uint64 { return threeWay(x, y, z, table) & math.MaxUint32 }, types["b32"], ops[:4])
}

// threeWay computes lop3: bit i of the table is the result where the bits of x, y, and z make the
// number i.
func threeWay(x, y, z, table uint64) (r uint64) {
	for i := range uint64(8) {
		if table>>i&1 != 0 {
			r |= (x ^ (i>>2&1 - 1)) & (y ^ (i>>1&1 - 1)) & (z ^ (i&1 - 1))
		}
	}
	return r
}

// buildMultiply builds mul and mad. The third source of mad, which is added, has the width of the
// result.
func buildMultiply(c *compiler, in *instr, mods, ops []string) {
	t := lastType(mods)
	m := t.mask()
	switch {
	case mods[0] == "wide" && t.bits < 64:
		m = typ{bits: 2 * t.bits}.mask()
	case mods[0] != "lo":
		unsupported("product %q", mods[0])
	}
	if len(ops) == 3 {
		ops = append(ops, "0") // this is mul
	}
	f := func(a, b, c uint64) uint64 { return (uint64(t.extend(a)*t.extend(b)) + c) & m }
	c.compute(in, f, t, ops)
}

// buildInsertField builds bfi: b with d bits of a inserted at bit c.
func buildInsertField(c *compiler, in *instr, mods, ops []string) {
	t := lastType(mods)
	m := t.mask()
	field := uint64(1)<<min(parseNumber(ops[4]), 64) - 1
	f := func(a, b, at uint64) uint64 { return (b&^(field<<(at&255)) | a&field<<(at&255)) & m }
	c.compute(in, f, t, ops[:4])
}

// buildCompare is setp.cmp.type p, a, b.
func buildCompare(c *compiler, in *instr, mods, ops []string) {
	t := lastType(mods)
	compare := map[string]func(a, b uint64) bool{
		"eq": func(a, b uint64) bool { return a == b },
		"ne": func(a, b uint64) bool { return a != b },
		"lt": t.less,
		"ge": func(a, b uint64) bool { return !t.less(a, b) },
		"gt": func(a, b uint64) bool { return t.less(b, a) },
		"le": func(a, b uint64) bool { return !t.less(b, a) },
	}[mods[0]]
	if compare == nil {
		unsupported("comparison %q", mods[0])
	}
	f := func(a, b, _ uint64) uint64 {
		if compare(a, b) {
			return 1
		}
		return 0
	}
	c.compute(in, f, t, ops)
}
