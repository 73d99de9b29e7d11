package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// gpuKernel loads a kernel. Only tests use another one than ourKernel.
type gpuKernel func(c *cuda.Context, info cuda.Info) (gpuFunctions, error)

// gpuFunctions are the functions of a loaded kernel. Call them on the device's thread.
type gpuFunctions interface {
	// buildTables enqueues the work that comes before a unit's first piece in a slot.
	buildTables(c *cuda.Context, s *gpuSlot, p *gpuPiece) error
	// launch enqueues the decoding of the piece that was uploaded to a slot.
	launch(c *cuda.Context, s *gpuSlot, p *gpuPiece) error
}

// describeKernel names our kernel for the manifest.
func describeKernel() string {
	return fmt.Sprintf("df11-convert, PTX %s, sha256 %x", kernel.Version,
		sha256.Sum256([]byte(kernel.PTX())))
}

// ourFunctions are our kernel's entry points.
type ourFunctions struct{ build, decode cuda.Function }

// ourKernel loads our kernel. It refuses devices that are too old, because the driver's compiler
// would only name PTX versions.
func ourKernel(c *cuda.Context, info cuda.Info) (gpuFunctions, error) {
	if 10*info.Major+info.Minor < kernel.Target {
		return nil, fmt.Errorf("our kernel needs compute capability %d.%d, %s has %d.%d",
			kernel.Target/10, kernel.Target%10, info.Name, info.Major, info.Minor)
	}
	m, err := c.LoadModule(kernel.PTX())
	if err != nil {
		err = fmt.Errorf("load our kernel: %w", err)
		if e, ok := errors.AsType[*cuda.Error](err); ok && e.Hint() != "" {
			err = fmt.Errorf("%w; %s", err, e.Hint())
		}
		return nil, err
	}
	f := new(ourFunctions)
	if f.build, err = c.Function(m, kernel.BuildTables); err != nil {
		return nil, err
	}
	if f.decode, err = c.Function(m, kernel.DecodeTiles); err != nil {
		return nil, err
	}
	return f, c.PreferShared(f.decode)
}

// buildTables makes the tables from one piece's luts. All pieces of a unit share them.
func (f *ourFunctions) buildTables(c *cuda.Context, s *gpuSlot, p *gpuPiece) error {
	l := cuda.Launch{Blocks: 1, Threads: kernel.Threads, NShared: kernel.BuildShared,
		Stream: s.stream}
	return c.Launch(f.build, l, s.at(p.luts), uint64(p.nLUTs), s.at(p.tables))
}

func (f *ourFunctions) launch(c *cuda.Context, s *gpuSlot, p *gpuPiece) error {
	l := cuda.Launch{Threads: kernel.Threads, NShared: kernel.TilesShared(p.widest),
		Stream: s.stream}
	resident, err := c.Resident(f.decode, l.Threads, l.NShared)
	if err != nil {
		return err
	}
	l.Blocks = min(p.n, rounds*resident)
	return c.Launch(f.decode, l, append(s.decodeArgs(p), s.at(p.tables), uint64(p.n))...)
}

// rounds is how many blocks of DecodeTiles run one after the other in each place of the device. A
// few keep all places busy until shortly before the end; more would copy the tables more often.
const rounds = 4

// at returns the device address of an offset in the slot.
func (s *gpuSlot) at(offset int) uint64 { return uint64(s.memory) + uint64(offset) }

// decodeArgs returns the parameters that our kernel and the official one share.
func (s *gpuSlot) decodeArgs(p *gpuPiece) []uint64 {
	return []uint64{
		s.at(p.luts), s.at(p.stream), s.at(p.sm), s.at(p.positions), s.at(p.gaps), s.at(p.out),
		uint64(p.nLUTs), uint64(p.nStream), uint64(p.nElems),
	}
}
