package kernel

// The files ptx_*_test.go run the PTX text of a GPU kernel on the CPU and report faults that a GPU
// would hide. They know only the instructions that our kernel and the official one use, and they
// don't measure speed.
//
// parsePTX reads a module; entryPoint.run launches one of its kernels over a memory. Threads run in
// warps of 32 in lockstep. If a branch splits the threads of a warp, they run one after the other
// up to the first instruction that all of them reach, as on a GPU. The interpreter checks that
//
//    - every access is inside one buffer and aligned to its size;
//    - no kernel relies on what registers hold at the start, which is noise, or reads shared
//      memory before writing it;
//    - no thread touches a byte that another thread writes: in shared memory between two barriers,
//      in global memory during the whole launch;
//    - all threads of a block reach each barrier, and all threads that a shuffle names reach it;
//    - no block runs for too many steps.
//
// Each violation is a fault with the line, the block, and the thread. The interpreter checks
// neither weak memory ordering nor what an assembler makes of the text.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// module is a parsed PTX file.
type module struct {
	kernels map[string]*entryPoint
	shared  []string // names of the dynamic shared memory
}

// with returns a copy of the module in which k replaces the kernel of the same name.
func (m *module) with(k *entryPoint) *module {
	c := *m
	c.kernels = maps.Clone(m.kernels)
	c.kernels[k.name] = k
	return &c
}

// entryPoint is one kernel of a module, ready to run.
type entryPoint struct {
	name    string
	nParams int
	code    []instr
	rows    []rowStart
}

// without returns a copy of the kernel in which the n-th instruction of an opcode, counted from 0,
// does nothing. ok is false if there are fewer. Tests use it to show that they would notice a
// missing instruction.
func (k *entryPoint) without(opcode string, n int) (mutant *entryPoint, line int, ok bool) {
	for i, in := range k.code {
		if in.opcode != opcode {
			continue
		}
		if n--; n < 0 {
			c := *k
			c.code = slices.Clone(k.code)
			c.code[i] = instr{opcode: "nop", line: in.line}
			return &c, in.line, true
		}
	}
	return nil, 0, false
}

// launch holds how to run a kernel. Grid and block are one-dimensional; block is a multiple of 32.
type launch struct {
	grid, block int
	sharedBytes int      // dynamic shared memory
	args        []uint64 // one per parameter: addresses from memory, or numbers
	seed        uint64   // for the noise, and for the order of blocks and warps
	maxSteps    int64    // instructions of a block, counted per warp; 0 means 20 million
	corrupt     bool     // the data makes kernels read shared memory that they haven't written
}

// stats count what a launch did.
type stats struct {
	warpInstructions int64 // times 32 gives lane slots
	barriers         int64 // summed over the blocks
}

// fault is something that must not happen on a GPU.
type fault struct {
	kernel string
	line   int // of the PTX text
	block  int
	thread int // in the block
	err    error
}

func (f *fault) Error() string {
	return fmt.Sprintf("%s, line %d, block %d, thread %d: %v", f.kernel, f.line, f.block, f.thread, f.err)
}

// run launches the kernel and waits until it ends. Blocks run one after the other, in an order that
// depends on the seed. An error is a *fault.
func (k *entryPoint) run(m *memory, l launch) (stats, error) {
	m.beginLaunch()
	rng := rand.New(rand.NewPCG(l.seed, 0x9e3779b97f4a7c15))
	b := newBlock(k, m, l)
	for _, i := range rng.Perm(l.grid) {
		b.start(i, rng)
		if err := b.run(rng); err != nil {
			return b.stats, err
		}
	}
	return b.stats, nil
}
