package ptx

import "fmt"

// typ is an operand type: its width, and whether it is signed.
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

func parseType(s string) (typ, error) {
	if t, ok := types[s]; ok {
		return t, nil
	}
	return typ{}, fmt.Errorf("type %q is not supported", s)
}

// mask has the type's bits set.
func (t typ) mask() uint64 { return ^uint64(0) >> (64 - t.bits) }

// wide is the type of twice the width.
func (t typ) wide() typ { return typ{min(64, 2*t.bits), t.signed} }

// extend gives a function that widens a value to 64 bits as its type demands.
func (t typ) extend(v uint64) int64 {
	s := 64 - t.bits
	if t.signed {
		return int64(v<<s) >> s
	}
	return int64(v & t.mask())
}
