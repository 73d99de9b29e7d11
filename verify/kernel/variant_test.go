package kernel

import (
	"bytes"

	"github.com/df11-convert/df11-convert/internal/testing/ptx"
)

// variant is one way to run a kernel over a unit.
type variant struct {
	steps int64
	skew  int  // of the addresses of stream, sign_mantissa, and output; 0: aligned
	own   bool // use our shared memory size instead of the official one
	slack int  // readable bytes after gaps and positions
	seed  uint64

	corrupt bool // the data makes kernels read shared memory that they haven't written
}

// officialShared returns how many bytes of dynamic shared memory the official kernel needs for
// chunks of at most n weights (docs/format.md §9).
func officialShared(n int) int { return Threads*4 + 4 + 2*n }

// decodeShared returns how many bytes of dynamic shared memory our Decode needs with its largest
// tables. Decode also works with officialShared, but not with less than both.
func decodeShared(n int) int {
	const scan, slots, padding = 256, 1024, 32
	return scan + slots + padding + TableBytes + n
}

// unitMemory holds a unit as a GPU would.
type unitMemory struct {
	ptx.Memory
	out                                    []byte
	luts, stream, sm, positions, gaps, dst uint64
}

func newUnitMemory(u *unit, v variant) *unitMemory {
	m := &unitMemory{out: bytes.Repeat([]byte{0xa5}, len(u.bf))}
	m.luts = m.Input("luts", u.luts, 0)
	m.stream = m.Input("encoded_exponent", u.stream, v.skew)
	m.sm = m.Input("sign_mantissa", u.sm, v.skew)
	m.positions = m.Input("output_positions", append(bytes.Clone(u.positions), make([]byte, 4*min(1, v.slack))...), 0)
	m.gaps = m.Input("gaps", append(bytes.Clone(u.gaps), make([]byte, v.slack)...), v.skew%4)
	m.dst = m.Output("output", m.out, 2*v.skew)
	return m
}

func (m *unitMemory) args(u *unit) []uint64 {
	return []uint64{
		m.luts, m.stream, m.sm, m.positions, m.gaps, m.dst,
		uint64(len(u.luts) / 256), uint64(len(u.stream)), uint64(u.nElems()),
	}
}

// decode runs the entry point that both kernels have.
func decode(k *ptx.Kernel, u *unit, v variant) ([]byte, ptx.Stats, error) {
	m := newUnitMemory(u, v)
	most := min(u.most(), 32768) // corrupt positions may hold anything
	shared := officialShared(most)
	if v.own {
		shared = decodeShared(most)
	}
	stats, err := k.Run(&m.Memory, ptx.Launch{
		Grid: u.nChunks(), Block: Threads, SharedBytes: shared, Args: m.args(u), Seed: v.seed, MaxSteps: v.steps, Corrupt: v.corrupt,
	})
	return m.out, stats, err
}

// decodeTiles runs our two entry points with tables already built.
func decodeTiles(mod *ptx.Module, u *unit, v variant, grid int) ([]byte, ptx.Stats, error) {
	m := newUnitMemory(u, v)
	tables := m.Output("tables", make([]byte, TableBytes), 0)
	built, err := mod.Kernels[BuildTables].Run(&m.Memory, ptx.Launch{
		Grid: 1, Block: Threads, SharedBytes: BuildShared, Args: []uint64{m.luts, m.args(u)[6], tables}, Seed: v.seed,
	})
	if err != nil {
		return nil, built, err
	}
	stats, err := mod.Kernels[DecodeTiles].Run(&m.Memory, ptx.Launch{
		Grid: min(grid, u.nChunks()), Block: Threads, SharedBytes: TilesShared(min(u.most(), 32768)), Seed: v.seed, MaxSteps: v.steps,
		Corrupt: v.corrupt, Args: append(m.args(u), tables, uint64(u.nChunks())),
	})
	return m.out, stats, err
}
