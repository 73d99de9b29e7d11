package verify

import (
	"fmt"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// loadKernel loads our kernel. It refuses devices that are too old, because the driver's compiler
// would only name PTX versions.
func (g *GPU) loadKernel(c *cuda.Context, info cuda.Info) error {
	if 10*info.Major+info.Minor < kernel.Target {
		return fmt.Errorf("our kernel needs compute capability %d.%d, %s has %d.%d",
			kernel.Target/10, kernel.Target%10, info.Name, info.Major, info.Minor)
	}
	f, err := c.Load(kernel.PTX(), kernel.BuildTables, kernel.DecodeTiles)
	if err != nil {
		return fmt.Errorf("load our kernel: %w", err)
	}
	g.build, g.decode = f[0], f[1]
	return c.PreferShared(g.decode)
}

// buildTables enqueues making the tables from one piece's luts. All pieces of a unit share them.
func (s *gpuSlot) buildTables(c *cuda.Context, p *gpuPiece) error {
	l := cuda.Launch{Blocks: 1, Threads: kernel.Threads, NShared: kernel.BuildShared,
		Stream: s.stream}
	return c.Launch(s.gpu.build, l, s.at(p.luts), uint64(p.nLUTs), s.at(p.tables))
}

// launch enqueues the decoding of the piece that was uploaded to the slot.
func (s *gpuSlot) launch(c *cuda.Context, p *gpuPiece) error {
	l := cuda.Launch{Threads: kernel.Threads, NShared: kernel.TilesShared(p.widest),
		Stream: s.stream}
	resident, err := c.Resident(s.gpu.decode, l.Threads, l.NShared)
	if err != nil {
		return err
	}
	l.Blocks = min(p.n, rounds*resident)
	return c.Launch(s.gpu.decode, l, s.at(p.luts), s.at(p.stream), s.at(p.sm), s.at(p.positions),
		s.at(p.gaps), s.at(p.out), uint64(p.nLUTs), uint64(p.nStream), uint64(p.nElems),
		s.at(p.tables), uint64(p.n))
}

// rounds is how many blocks of DecodeTiles run one after the other in each place of the device. A
// few keep all places busy until shortly before the end; more would copy the tables more often.
const rounds = 4

// at returns the device address of an offset in the slot.
func (s *gpuSlot) at(offset int) uint64 { return uint64(s.memory) + uint64(offset) }
