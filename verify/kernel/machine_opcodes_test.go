package kernel

import (
	"math"
	"math/bits"
)

// modifiers are those of an instruction: what follows its opcode behind dots.
type modifiers map[string]bool

// machineOpcode is an opcode with the modifiers that are known of it.
type machineOpcode struct {
	modifiers string
	build     func(c *compiler, in *instr, m modifiers, ops []string) error
}

// values are an instruction's sources, in order. Those that it does not have are 0.
type values [8]uint64

// result is what an instruction computes: a value, cut to the width of its target, and up to two predicates.
type result struct {
	value uint64
	p, q  bool
}

// machineOpcodes are the known opcodes. With a U in front, an opcode works on registers of the whole warp.
var machineOpcodes = map[string]machineOpcode{
	"MOV": {"U32 64", arithmetic(first0)}, "S2R": {"", arithmetic(first0)}, "S2UR": {"", arithmetic(first0)}, "CS2R": {"32", arithmetic(first0)},
	"LDC": {"64", loadConstant}, "LDCU": {"64", loadConstant}, "R2UR": {"", toUniform}, "P2R": {"", fromPredicates}, "HFMA2": {"", halves}, "RPCMOV": {"32", arithmetic(first0)},
	"IADD": {"64", arithmetic(sum)}, "VIADD": {"", arithmetic(sum)}, "IADD3": {"X 64", arithmetic(sum)},
	"IMAD": {"MOV U32 IADD SHL X WIDE HI", arithmetic(multiplyAdd)}, "LEA": {"HI X SX32", arithmetic(shiftAdd)},
	"LOP3": {"LUT", arithmetic(logic)}, "PLOP3": {"LUT", arithmetic(predicateLogic)}, "PRMT": {"", arithmetic(chooseBytes)},
	"SHF": {"L R W U32 S32 U64 HI", arithmetic(shift)}, "FLO": {"U32", arithmetic(highestBit)},
	"ISETP": {"EQ NE LT LE GT GE U32 AND OR", arithmetic(compare)}, "SEL": {"", arithmetic(choice)},
	"IMNMX": {"U32", arithmetic(extreme)}, "VIMNMX": {"U32 U16x2", arithmetic(extreme)}, "VIADDMNMX": {"U32", arithmetic(extremeOfSum)},

	"LDG": {"E U8 U16 64 128 CONSTANT SYS", memoryAccess}, "STG": {"E U8 U16 64 128 SYS", memoryAccess},
	"LDS": {"U U8 U16 64 128", memoryAccess}, "STS": {"U8 U16 64 128", memoryAccess}, "SHFL": {"UP DOWN IDX", exchange},

	"NOP": {"", flow(flowNext)}, "EXIT": {"", flow(flowReturn)}, "BAR": {"SYNC DEFER_BLOCKING", flow(flowBarrier)}, "BRA": {"U", branch},
	"BSSY": {"RECONVERGENT RELIABLE", noteLanes}, "BSYNC": {"RECONVERGENT RELIABLE", meet}, "WARPSYNC": {"ALL", meet},
	"BREAK": {"RELIABLE", leave}, "BMOV": {"32 CLEAR", moveLanes},
}

// wide says which operands are 64 bits: d the target, a, b, c the sources.
func (m modifiers) wide(opcode string) string {
	switch {
	case m["64"]:
		return "dabc"
	case m["WIDE"]:
		return "dc"
	case m["HI"] && opcode == "IMAD":
		return "c"
	case opcode == "CS2R" && !m["32"]:
		return "d"
	}
	return ""
}

// ---- Arithmetic ----

func first0(modifiers) func(*values) result {
	return func(s *values) result { return result{value: s[0]} }
}

// sum adds all sources, carries that come in among them.
func sum(modifiers) func(*values) result {
	return func(s *values) result {
		v := s[0] + s[1] + s[2] + s[3] + s[4]
		return result{v, v>>32 >= 1, v>>32 >= 2}
	}
}

// multiplyAdd is a*b + c, and a carry that comes in.
func multiplyAdd(m modifiers) func(*values) result {
	signed, high := (m["WIDE"] || m["HI"]) && !m["U32"], m["HI"]
	return func(s *values) result {
		v := s[0] * s[1]
		if signed {
			v = uint64(int64(int32(s[0])) * int64(int32(s[1])))
		}
		if v += s[2] + s[3]; high {
			v >>= 32
		}
		return result{value: v}
	}
}

// shiftAdd is (a << n) + b, or with HI the upper half of (c:a << n), plus b and a carry that comes in.
func shiftAdd(m modifiers) func(*values) result {
	high, extend := m["HI"], m["SX32"]
	return func(s *values) result {
		v, n, carry := s[0], s[2], uint64(0)
		switch {
		case extend:
			v, carry = uint64(int64(int32(v))), s[3]
		case high:
			v, n, carry = s[2]<<32|v, s[3], s[4]
		}
		if v <<= n & 63; high {
			v >>= 32
		}
		v = v&math.MaxUint32 + s[1] + carry
		return result{value: v, p: v>>32 != 0}
	}
}

// logic has the table d; the two most frequent tables go a faster way.
func logic(modifiers) func(*values) result {
	return func(s *values) result {
		a, b, c, v := s[0], s[1], s[2], uint64(0)
		switch s[3] {
		case 0xc0:
			v = a & b
		case 0xfc:
			v = a | b
		default:
			v = threeWay(a, b, c, s[3])
		}
		return result{value: v, p: uint32(v) != 0 || s[4] != 0}
	}
}

func predicateLogic(modifiers) func(*values) result {
	return func(s *values) result {
		i := s[0]<<2 | s[1]<<1 | s[2]
		return result{p: s[3]>>i&1 != 0, q: s[4]>>i&1 != 0}
	}
}

func chooseBytes(modifiers) func(*values) result {
	return func(s *values) result { return result{value: permute(s[0], s[2], s[1])} }
}

// shift shifts c:a by b and gives the lower word, with HI the upper one.
func shift(m modifiers) func(*values) result {
	left, wrap, high, signed, width := m["L"], m["W"], m["HI"], m["S32"], uint64(32)
	if m["U64"] {
		width = 64
	}
	return func(s *values) result {
		v, n := s[2]<<32|s[0], min(s[1], width)
		if wrap {
			n = s[1] % width
		}
		switch {
		case left:
			v <<= n
		case signed:
			v = uint64(int64(v) >> n)
		default:
			v >>= n
		}
		if high {
			v >>= 32
		}
		return result{value: v}
	}
}

func highestBit(modifiers) func(*values) result {
	return func(s *values) result { return result{value: uint64(bits.Len64(s[0]) - 1)} }
}

func choice(modifiers) func(*values) result {
	return func(s *values) result { return result{value: choose(s[0], s[1], s[2])} }
}

// compare combines a comparison, and its opposite, with a predicate.
func compare(m modifiers) func(*values) result {
	t, or := typ{32, !m["U32"]}, m["OR"]
	ifLess, ifEqual := m["LT"] || m["LE"] || m["NE"], m["EQ"] || m["LE"] || m["GE"]
	ifGreater := m["GT"] || m["GE"] || m["NE"]
	return func(s *values) result {
		is := ifGreater
		switch {
		case s[0] == s[1]:
			is = ifEqual
		case t.less(s[0], s[1]):
			is = ifLess
		}
		if or {
			return result{p: is || s[2] != 0, q: !is || s[2] != 0}
		}
		return result{p: is && s[2] != 0, q: !is && s[2] != 0}
	}
}

// extreme is the minimum where the predicate c holds, else the maximum.
func extreme(m modifiers) func(*values) result {
	t, n := typ{32, !m["U32"]}, uint64(1)
	if m["U16x2"] {
		t, n = typ{16, false}, 2
	}
	low, high := minimum(t), maximum(t)
	return func(s *values) (r result) {
		for i := range n {
			a, b := s[0]>>(16*i)&t.mask(), s[1]>>(16*i)&t.mask()
			r.value |= choose(low(a, b, 0), high(a, b, 0), s[2]) << (16 * i)
		}
		return r
	}
}

func extremeOfSum(m modifiers) func(*values) result {
	of := extreme(m)
	return func(s *values) result { return of(&values{(s[0] + s[1]) & math.MaxUint32, s[2], s[3]}) }
}
