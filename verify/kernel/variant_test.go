package kernel

import (
	"bytes"
	"encoding/binary"

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

// picks say what DecodePicked decodes: two owners of each tile, and the owners that are picked.
type picks struct {
	owners [][2]uint16
	picked []byte
}

// decodeTiles runs DecodeTiles, with tables already built.
func decodeTiles(mod *ptx.Module, u *unit, v variant, grid int) ([]byte, ptx.Stats, error) {
	return decodePicked(mod, u, v, grid, nil)
}

// decodePicked runs BuildTables, and then DecodePicked, or DecodeTiles if p is nil.
func decodePicked(mod *ptx.Module, u *unit, v variant, grid int, p *picks) ([]byte, ptx.Stats, error) {
	m := newUnitMemory(u, v)
	tables := m.Output("tables", make([]byte, TableBytes), 0)
	built, err := mod.Kernels[BuildTables].Run(&m.Memory, ptx.Launch{
		Grid: 1, Block: Threads, SharedBytes: BuildShared, Args: []uint64{m.luts, m.args(u)[6], tables}, Seed: v.seed,
	})
	if err != nil {
		return nil, built, err
	}
	k, args := mod.Kernels[DecodeTiles], append(m.args(u), tables, uint64(u.nChunks()))
	if p != nil {
		k = mod.Kernels[DecodePicked]
		args = append(args, m.Input("owners", p.bytes(), 0), m.Input("picked", p.picked, 0))
	}
	stats, err := k.Run(&m.Memory, ptx.Launch{
		Grid: min(grid, u.nChunks()), Block: Threads, SharedBytes: TilesShared(min(u.most(), 32768)), Seed: v.seed, MaxSteps: v.steps,
		Corrupt: v.corrupt, Args: args,
	})
	return m.out, stats, err
}

// bytes returns the owners as the kernel reads them.
func (p *picks) bytes() []byte {
	var b []byte
	for _, o := range p.owners {
		b = binary.LittleEndian.AppendUint32(b, uint32(o[1])<<16|uint32(o[0]))
	}
	return b
}

// has reports whether a tile is decoded.
func (p *picks) has(tile int) bool {
	return p.picked[p.owners[tile][0]]|p.picked[p.owners[tile][1]] != 0
}
