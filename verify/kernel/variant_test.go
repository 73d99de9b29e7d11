package kernel

import "bytes"

// variant is one way to run a kernel over a unit.
type variant struct {
	steps int64
	skew  int  // of the addresses of stream, sign_mantissa, and output; 0: aligned
	own   bool // use our shared memory size instead of the official one
	slack int  // readable bytes after gaps and positions
	seed  uint64

	corrupt bool // the data makes kernels read shared memory that they haven't written
}

// Decode is the entry point with the official kernel's parameters and launch. Only tests launch it.
const Decode = "decode"

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
	memory
	out                                    []byte
	luts, stream, sm, positions, gaps, dst uint64
}

func newUnitMemory(u *unit, v variant) *unitMemory {
	m := &unitMemory{out: bytes.Repeat([]byte{0xa5}, len(u.bf))}
	m.luts = m.input("luts", u.luts, 0)
	m.stream = m.input("encoded_exponent", u.stream, v.skew)
	m.sm = m.input("sign_mantissa", u.sm, v.skew)
	m.positions = m.input("output_positions", append(bytes.Clone(u.positions), make([]byte, 4*min(1, v.slack))...), 0)
	m.gaps = m.input("gaps", append(bytes.Clone(u.gaps), make([]byte, v.slack)...), v.skew%4)
	m.dst = m.output("output", m.out, 2*v.skew)
	return m
}

func (m *unitMemory) args(u *unit) []uint64 {
	return []uint64{
		m.luts, m.stream, m.sm, m.positions, m.gaps, m.dst,
		uint64(len(u.luts) / 256), uint64(len(u.stream)), uint64(u.nElems()),
	}
}

// decode runs the entry point that both kernels have.
func decode(k *entryPoint, u *unit, v variant) ([]byte, stats, error) {
	m := newUnitMemory(u, v)
	most := min(u.most(), 32768) // corrupt positions may hold anything
	shared := officialShared(most)
	if v.own {
		shared = decodeShared(most)
	}
	stats, err := k.run(&m.memory, launch{
		grid: u.nChunks(), block: Threads, sharedBytes: shared, args: m.args(u), seed: v.seed, maxSteps: v.steps, corrupt: v.corrupt,
	})
	return m.out, stats, err
}

// decodeTiles runs our two entry points with tables already built.
func decodeTiles(mod *module, u *unit, v variant, grid int) ([]byte, stats, error) {
	m := newUnitMemory(u, v)
	tables := m.output("tables", make([]byte, TableBytes), 0)
	built, err := mod.kernels[BuildTables].run(&m.memory, launch{
		grid: 1, block: Threads, sharedBytes: BuildShared, args: []uint64{m.luts, m.args(u)[6], tables}, seed: v.seed,
	})
	if err != nil {
		return nil, built, err
	}
	stats, err := mod.kernels[DecodeTiles].run(&m.memory, launch{
		grid: min(grid, u.nChunks()), block: Threads, sharedBytes: TilesShared(min(u.most(), 32768)), seed: v.seed, maxSteps: v.steps,
		corrupt: v.corrupt, args: append(m.args(u), tables, uint64(u.nChunks())),
	})
	return m.out, stats, err
}
