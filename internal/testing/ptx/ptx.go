// Package ptx runs the PTX text of a GPU kernel on the CPU and reports faults that a GPU would hide.
// Only the tests of verify/kernel run it, in every pull request on our kernel and in
// .ci/deep/30-kernel.sh also on the official one; it may go when CI has a GPU. It knows only the
// instructions that these two use, and it doesn't measure speed.
//
// [Parse] reads a module; [Kernel.Run] launches one of its kernels over a [Memory]. Threads run in
// warps of 32 in lockstep. If a branch splits the threads of a warp, they run one after the other
// up to the first instruction that all of them reach, as on a GPU. The interpreter checks that
//
//   - every access is inside one buffer and aligned to its size;
//   - no kernel relies on what registers hold at the start, which is noise, or reads shared memory
//     before writing it;
//   - no thread touches a byte that another thread writes: in shared memory between two barriers,
//     in global memory during the whole launch;
//   - all threads of a block reach each barrier, and all threads that a shuffle names reach it;
//   - no block runs for too many steps.
//
// Each violation is a [Fault] with the line, the block, and the thread. The interpreter checks
// neither weak memory ordering nor what an assembler makes of the text.
package ptx

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// Module is a parsed PTX file.
type Module struct {
	Kernels map[string]*Kernel
	shared  []string // names of the dynamic shared memory
}

// With returns a copy of the module in which k replaces the kernel of the same name.
func (m *Module) With(k *Kernel) *Module {
	c := *m
	c.Kernels = maps.Clone(m.Kernels)
	c.Kernels[k.name] = k
	return &c
}

// Kernel is one kernel of a module, ready to run.
type Kernel struct {
	name    string
	nParams int
	code    []instr
	rows    []rowStart
}

// Without returns a copy of the kernel in which the n-th instruction of an opcode, counted from 0,
// does nothing. ok is false if there are fewer. Tests use it to show that they would notice a
// missing instruction.
func (k *Kernel) Without(opcode string, n int) (mutant *Kernel, line int, ok bool) {
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

// Launch holds how to run a kernel. Grid and block are one-dimensional; block is a multiple of 32.
type Launch struct {
	Grid, Block int
	SharedBytes int      // dynamic shared memory
	Args        []uint64 // one per parameter: addresses from Memory, or numbers
	Seed        uint64   // for the noise, and for the order of blocks and warps
	MaxSteps    int64    // instructions of a block, counted per warp; 0 means 20 million
	Corrupt     bool     // the data makes kernels read shared memory that they haven't written
}

// Stats count what a launch did.
type Stats struct {
	WarpInstructions int64 // times 32 gives lane slots
	Barriers         int64 // summed over the blocks
}

// Fault is something that must not happen on a GPU.
type Fault struct {
	kernel string
	line   int // of the PTX text
	block  int
	thread int // in the block
	err    error
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s, line %d, block %d, thread %d: %v", f.kernel, f.line, f.block, f.thread, f.err)
}

// Run launches the kernel and waits until it ends. Blocks run one after the other, in an order that
// depends on the seed. An error is a *Fault.
func (k *Kernel) Run(m *Memory, l Launch) (Stats, error) {
	m.beginLaunch()
	rng := rand.New(rand.NewPCG(l.Seed, 0x9e3779b97f4a7c15))
	b := newBlock(k, m, l)
	for _, i := range rng.Perm(l.Grid) {
		b.start(i, rng)
		if err := b.run(rng); err != nil {
			return b.stats, err
		}
	}
	return b.stats, nil
}
