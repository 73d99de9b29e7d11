//go:build !nogpu

package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// maxKernel is how long a PTX file may be.
const maxKernel = 16 << 20

// gpuKernel is a kernel that decodes: ours, or one with the interface of the official kernel.
type gpuKernel struct {
	path     string // "" for ours
	ptx      string
	describe string
	nShared  int // bytes of shared memory at least
}

// readKernel reads the PTX file at path, or takes ours.
func readKernel(path string, nShared int) (*gpuKernel, error) {
	if path == "" {
		ptx := kernel.PTX()
		return &gpuKernel{ptx: ptx, nShared: nShared, describe: "df11-convert, " + describePTX(ptx)}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKernel+1)) //nolint:forbidigo // this package imports nothing that reads files
	if err == nil && len(b) > maxKernel {
		err = fmt.Errorf("%s: more than the %d bytes that PTX files have at most", path, maxKernel)
	}
	if err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	k := &gpuKernel{path: path, ptx: string(b), nShared: nShared, describe: filepath.Base(path) + ", " + describePTX(string(b))}
	if _, _, ok := kernel.Version(k.ptx); !ok || !kernel.HasEntry(k.ptx, kernel.Decode) {
		return nil, fmt.Errorf("kernel %s: not a PTX text with an entry point %q", path, kernel.Decode)
	}
	return k, nil
}

func describePTX(ptx string) string {
	major, minor, _ := kernel.Version(ptx)
	return fmt.Sprintf("PTX %d.%d, sha256 %x", major, minor, sha256.Sum256([]byte(ptx)))
}

// gpuFunctions are a kernel's entry points on a device.
type gpuFunctions struct {
	module *cuda.Module
	build  *cuda.Function // ours only: makes tables
	decode *cuda.Function
}

func (k *gpuKernel) load(c *cuda.Context, driver *cuda.Driver, info cuda.Info) (f gpuFunctions, err error) {
	if err := k.suits(info); err != nil {
		return f, err
	}
	if f.module, err = c.LoadModule(k.ptx); err != nil {
		return f, k.explain(err, driver)
	}
	if k.path != "" {
		f.decode, err = c.Function(f.module, kernel.Decode)
		return f, err
	}
	if f.build, err = c.Function(f.module, kernel.BuildTables); err != nil {
		return f, err
	}
	if f.decode, err = c.Function(f.module, kernel.DecodeTiles); err != nil {
		return f, err
	}
	return f, c.PreferShared(f.decode)
}

func (k *gpuKernel) name() string {
	if k.path != "" {
		return "kernel " + k.path
	}
	return "our kernel"
}

// suits compares the kernel's target with a device, where the driver's compiler would speak of versions only.
func (k *gpuKernel) suits(info cuda.Info) error {
	major, minor, ok := kernel.Target(k.ptx)
	if !ok || info.Major > major || info.Major == major && info.Minor >= minor {
		return nil
	}
	return fmt.Errorf("%s needs compute capability %d.%d, %s has %d.%d", k.name(), major, minor, info.Name, info.Major, info.Minor)
}

// explain adds to the error of a driver that does not load a kernel what can be done about it.
func (k *gpuKernel) explain(err error, driver *cuda.Driver) error {
	err = fmt.Errorf("load %s: %w", k.name(), err)
	e, ok := errors.AsType[*cuda.Error](err)
	if ok && e.Hint() != "" {
		return fmt.Errorf("%w; %s", err, e.Hint())
	}
	if !ok || !e.RefusedPTX() {
		return err
	}
	major, minor, _ := kernel.Version(k.ptx)
	needs := kernel.NeedsCUDA(major, minor)
	if needs == "" {
		return err
	}
	hasMajor, hasMinor := driver.Version()
	return fmt.Errorf("%w; PTX %d.%d needs a driver for CUDA %s or later, this one is for %d.%d", err, major, minor, needs, hasMajor, hasMinor)
}

// buildTables enqueues the making of our kernel's tables, from the luts of a piece in the slot. The tables are the same
// for all pieces of a unit. Other kernels have none.
func (k *gpuKernel) buildTables(c *cuda.Context, s *gpuSlot, p *gpuPiece) error {
	build := s.device.functions.build
	if build == nil {
		return nil
	}
	l := cuda.Launch{Blocks: 1, Threads: kernel.Threads, NShared: kernel.BuildShared, Stream: s.stream}
	return c.Launch(build, l, uint64(s.memory)+uint64(p.luts), uint64(p.nLUTs), uint64(s.memory)+uint64(p.tables))
}

// launch enqueues the decoding of a piece in the slot, behind buildTables.
func (k *gpuKernel) launch(c *cuda.Context, s *gpuSlot, p *gpuPiece) error {
	at := func(offset int) uint64 { return uint64(s.memory) + uint64(offset) }
	args := []uint64{
		at(p.luts), at(p.stream), at(p.sm), at(p.positions), at(p.gaps), at(p.out),
		uint64(p.nLUTs), uint64(p.nStream), uint64(p.nElems),
	}
	l := cuda.Launch{Blocks: p.n, Threads: kernel.Threads, Stream: s.stream}
	f := &s.device.functions
	if f.build == nil {
		l.NShared = max(k.nShared, kernel.OfficialShared(p.widest))
		return c.Launch(f.decode, l, args...)
	}
	l.NShared = max(k.nShared, kernel.TilesShared(p.widest))
	resident, err := c.Resident(f.decode, l.Threads, l.NShared)
	if err != nil {
		return err
	}
	l.Blocks = min(p.n, rounds*resident)
	return c.Launch(f.decode, l, append(args, at(p.tables), uint64(p.n))...)
}

// rounds is how many blocks of DecodeTiles follow one another in every place. With a few, no place stays empty for long at
// the end; with many, blocks copy tables more often than they decode.
const rounds = 4
