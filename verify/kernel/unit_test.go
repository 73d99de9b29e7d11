package kernel

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
	"github.com/df11-convert/df11-convert/internal/testing/golden"
	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// unit is the kernels' input, and the output they must produce.
type unit struct {
	name                                  string
	luts, stream, sm, positions, gaps, bf []byte
}

func (u *unit) nElems() int  { return len(u.sm) }
func (u *unit) nChunks() int { return len(u.gaps) / 320 }

// position returns the first weight of a chunk.
func (u *unit) position(chunk int) int {
	if 4*chunk >= len(u.positions) {
		return u.nElems() // docs/format.md §7: the last entry may be missing
	}
	return int(binary.LittleEndian.Uint32(u.positions[4*chunk:]))
}

// most returns the largest number of weights of a chunk.
func (u *unit) most() int {
	most := 0
	for c := range u.nChunks() {
		most = max(most, u.position(c+1)-u.position(c))
	}
	return most
}

// piece cuts chunks first to end out of the unit, as the verifier does for a GPU.
func (u *unit) piece(first, end int) *unit {
	p := &unit{name: u.name, luts: u.luts}
	from, to := u.position(first), u.position(end)
	p.stream = u.stream[first*TileBytes : min(len(u.stream), end*TileBytes+4)]
	p.sm, p.bf = u.sm[from:to], u.bf[2*from:2*to]
	p.gaps = u.gaps[first*320 : end*320]
	for c := first; c <= end; c++ {
		p.positions = binary.LittleEndian.AppendUint32(p.positions, uint32(u.position(c)-from))
	}
	return p
}

// goldenUnits returns the golden units that DF11 can hold.
func goldenUnits(t testing.TB) (units []*unit) {
	t.Helper()
	for _, u := range golden.Units(t) {
		if u.Sound() {
			units = append(units, &unit{
				name: u.Name, luts: u.LUTs, stream: u.EncodedExponent, sm: u.SignMantissa,
				positions: u.OutputPositions, gaps: u.Gaps, bf: u.Input,
			})
		}
	}
	return units
}

// encode makes a unit from weights, or returns nil if DF11 can't hold them.
func encode(t testing.TB, name string, bf []byte) *unit {
	t.Helper()
	c, err := encoder.NewCounter([]int64{int64(len(bf) / 2)})
	if err != nil {
		return nil
	}
	c.Add(0, bf)
	e, err := c.Finish()
	if err != nil {
		return nil
	}
	stored := map[string]alloc.Memory{}
	for _, tensor := range e.Tensors() {
		stored[tensor.Name] = make(alloc.Memory, tensor.NBytes)
	}
	u := &unit{
		name: name, luts: stored[encoder.NameLUTs], stream: stored[encoder.NameEncodedExponent],
		sm: stored[encoder.NameSignMantissa], positions: stored[encoder.NameOutputPositions], gaps: stored[encoder.NameGaps], bf: bf,
	}
	dst := func(name string) io.WriterAt { return stored[name] }
	if err := e.Encode(t.Context(), alloc.Memory(bf), dst, 1); err != nil {
		return nil
	}
	return u
}

// randomWeights returns n weights whose exponents follow one of several shapes.
func randomWeights(rng *rand.Rand, n int) []byte {
	shape, base := rng.IntN(5), rng.IntN(200)
	spread := 0.3 + 4*rng.Float64()
	b := make([]byte, 2*n)
	for i := range n {
		e := 0
		switch shape {
		case 0: // normal weights
			e = int(math.Float32bits(float32(rng.NormFloat64()*0.02))>>23) & 255
		case 1: // geometric: codes of all lengths
			e = base + min(39, int(rng.ExpFloat64()*spread))
		case 2: // flat
			e = base + rng.IntN(1+int(spread*8))
		case 3: // skewed: mostly one exponent
			if e = base; rng.IntN(12) == 0 {
				e += rng.IntN(30)
			}
		case 4: // two exponents and rare others
			if e = base + rng.IntN(2); rng.IntN(50) == 0 {
				e = rng.IntN(240)
			}
		}
		sm := rng.Uint32()
		binary.LittleEndian.PutUint16(b[2*i:], uint16(sm&0x80)<<8|uint16(min(e, 239))<<7|uint16(sm&0x7f))
	}
	return b
}

// randomUnit returns the seed's random unit. Most are small; some have several chunks.
func randomUnit(t testing.TB, seed uint64, most int) *unit {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	for {
		n := 2 + rng.IntN(40)
		if rng.IntN(4) != 0 {
			n = 2 + int(float64(most)*math.Pow(rng.Float64(), 3))
		}
		if u := encode(t, "random", randomWeights(rng, n)); u != nil {
			return u
		}
	}
}

// fibonacciUnit has codes of every length up to nSymbols bits.
func fibonacciUnit(t testing.TB, nSymbols int) *unit {
	t.Helper()
	u := encode(t, "fibonacci", plain.Fibonacci(nSymbols, uint64(nSymbols)))
	if u == nil {
		t.Fatal("no unit of Fibonacci counts")
	}
	return u
}

// spoil damages a copy of the unit at random and keeps all sizes.
func (u *unit) spoil(rng *rand.Rand) *unit {
	s := *u
	array := []*[]byte{&s.luts, &s.stream, &s.gaps, &s.positions}[rng.IntN(4)]
	b := bytes.Clone(*array)
	for range 1 + rng.IntN(20) {
		at := rng.IntN(len(b))
		switch rng.IntN(3) {
		case 0:
			b[at] = uint8(rng.Uint32())
		case 1:
			b[at] = 0
		default:
			for i := at; i < min(len(b), at+rng.IntN(64)); i++ {
				b[i] = uint8(rng.Uint32())
			}
		}
	}
	*array = b
	return &s
}
