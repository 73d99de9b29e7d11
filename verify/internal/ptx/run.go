package ptx

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// Launch says how to run a kernel. Grid and Block are one-dimensional; Block is a multiple of 32.
type Launch struct {
	Grid, Block int
	SharedBytes int      // dynamic shared memory
	Args        []uint64 // one per parameter: addresses from Memory, numbers
	Seed        uint64   // of the noise, and of the order of blocks and warps
	MaxSteps    int64    // instructions of a block, counted per warp; 0 means 20 million
}

// Stats count what a launch did.
type Stats struct {
	WarpInstructions int64 // times 32: lane slots
	LaneInstructions int64 // slots that did something
	Barriers         int64 // per block

	Lines map[int]int64 // WarpInstructions by line of the PTX text
}

// Fault is something that must not happen on a GPU.
type Fault struct {
	Kernel string
	Line   int // of the PTX text
	Block  int
	Thread int // in the block
	Err    error
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s, line %d, block %d, thread %d: %v", f.Kernel, f.Line, f.Block, f.Thread, f.Err)
}

// Unwrap gives the kind of the fault.
func (f *Fault) Unwrap() error { return f.Err }

// ErrStepLimit says that a block did not come to an end.
var ErrStepLimit = errors.New("step limit reached")

// specialRegisters are the readable ones, by thread number within the block.
var specialRegisters = map[string]func(b *block, l *Launch, thread int) uint64{
	"%tid.x":             func(_ *block, _ *Launch, t int) uint64 { return uint64(t) },
	"%laneid":            func(_ *block, _ *Launch, t int) uint64 { return uint64(t % warpSize) },
	"%ntid.x":            func(_ *block, l *Launch, _ int) uint64 { return uint64(l.Block) },
	"%ctaid.x":           func(b *block, _ *Launch, _ int) uint64 { return uint64(b.index) },
	"%nctaid.x":          func(_ *block, l *Launch, _ int) uint64 { return uint64(l.Grid) },
	"%dynamic_smem_size": func(_ *block, l *Launch, _ int) uint64 { return uint64(l.SharedBytes) },
}

// block is one block of threads while it runs.
type block struct {
	kernel *Kernel
	memory *Memory
	index  int
	nLanes int
	steps  int64
	shared sharedMemory
	warps  []warp
	stats  Stats

	profile []int64 // per instruction
}

func (b *block) globalThread(thread int) uint32 { return uint32(b.index*b.nLanes + thread) }

// count counts one instruction of a warp.
func (b *block) count(pc int, mask uint32) error {
	b.stats.WarpInstructions++
	b.stats.LaneInstructions += int64(bits.OnesCount32(mask))
	b.profile[pc]++
	if b.steps--; b.steps < 0 {
		return ErrStepLimit
	}
	return nil
}

// Run launches the kernel and waits for its end. Stats are complete when there is no error. The error is a *[Fault], or says what is wrong with
// the launch. Blocks run one after the other, in an order that Seed decides.
func (k *Kernel) Run(m *Memory, l Launch) (Stats, error) {
	if err := k.check(l); err != nil {
		return Stats{}, err
	}
	m.launch()
	rng := rand.New(rand.NewPCG(l.Seed, 0x9e3779b97f4a7c15))
	b := k.newBlock(m, l)
	for _, i := range rng.Perm(l.Grid) {
		b.start(l, i, rng)
		if err := b.run(rng); err != nil {
			return b.stats, err
		}
	}
	b.stats.Lines = map[int]int64{}
	for i, n := range b.profile {
		b.stats.Lines[k.code[i].line] += n
	}
	return b.stats, nil
}

func (k *Kernel) check(l Launch) error {
	switch {
	case l.Grid < 1 || l.Block < 1 || l.Block%warpSize != 0 || l.Block > 1024:
		return fmt.Errorf("ptx: launch of %d blocks of %d threads", l.Grid, l.Block)
	case k.threads != 0 && l.Block > k.threads:
		return fmt.Errorf("ptx: blocks of %d threads; %s is compiled for %d", l.Block, k.name, k.threads)
	case len(l.Args) != len(k.params):
		return fmt.Errorf("ptx: %d arguments; %s takes %d", len(l.Args), k.name, len(k.params))
	case l.SharedBytes < 0 || l.SharedBytes > 1<<18:
		return fmt.Errorf("ptx: %d bytes of shared memory", l.SharedBytes)
	}
	return nil
}

// newBlock allocates what all blocks of a launch use in turn.
func (k *Kernel) newBlock(m *Memory, l Launch) *block {
	n := k.nShared + l.SharedBytes
	b := &block{kernel: k, memory: m, nLanes: l.Block, warps: make([]warp, l.Block/warpSize), profile: make([]int64, len(k.code))}
	b.shared = sharedMemory{bytes: make([]byte, n), writes: make([]uint32, n), reads: make([]uint32, n), current: 1 << threadBits}
	for i := range b.warps {
		w := &b.warps[i]
		w.block, w.first = b, i*warpSize
		w.rows = make([]row, k.nRegs+len(k.consts)+len(k.special))
		w.preds = make([]uint32, k.nPreds+1)
		k.fillConstants(w, l)
	}
	return b
}

// fillConstants sets the rows of constants, and of what is the same in all blocks.
func (k *Kernel) fillConstants(w *warp, l Launch) {
	for i, v := range k.consts {
		w.rows[k.nRegs+i].fill(func(int) uint64 { return v })
	}
	for i := range k.special {
		k.fillSpecial(w, &l, i)
	}
}

func (k *Kernel) fillSpecial(w *warp, l *Launch, i int) {
	s := k.special[i]
	w.rows[k.nRegs+len(k.consts)+i].fill(func(lane int) uint64 {
		if s.name != "" {
			return specialRegisters[s.name](w.block, l, w.first+lane)
		}
		return l.Args[s.param] & k.params[s.param].typ.mask()
	})
}

func (r *row) fill(of func(lane int) uint64) {
	for lane := range r {
		r[lane] = of(lane)
	}
}

// start makes block i of a launch: noise everywhere, all threads at the first instruction.
func (b *block) start(l Launch, i int, rng *rand.Rand) {
	b.index = i
	b.steps = l.MaxSteps
	if b.steps == 0 {
		b.steps = 20e6
	}
	for j := range b.shared.bytes {
		b.shared.bytes[j] = uint8(rng.Uint32())
	}
	_ = b.shared.barrier()
	for j := range b.warps {
		w := &b.warps[j]
		b.kernel.noise(w, rng)
		for s, r := range b.kernel.special {
			if r.name == "%ctaid.x" {
				b.kernel.fillSpecial(w, &l, s)
			}
		}
		w.live = allLanes
		w.paths = append(w.paths[:0], path{0, len(b.kernel.code), allLanes})
	}
}

// noise fills a warp's registers.
func (k *Kernel) noise(w *warp, rng *rand.Rand) {
	for r, mask := range k.masks {
		v := rng.Uint64()
		for lane := range w.rows[r] {
			v = v*6364136223846793005 + 1442695040888963407
			w.rows[r][lane] = bits.ReverseBytes64(v) & mask
		}
	}
	for p := range w.preds {
		w.preds[p] = rng.Uint32()
	}
}

// run takes all warps from barrier to barrier until they are done.
func (b *block) run(rng *rand.Rand) error {
	for {
		waiting, done := 0, 0
		for _, i := range rng.Perm(len(b.warps)) {
			s, err := b.warps[i].run()
			if err != nil {
				return err
			}
			if s == stateBarrier {
				waiting++
			} else {
				done++
			}
		}
		if waiting == 0 {
			return nil
		}
		b.stats.Barriers++
		if err := b.meet(done); err != nil {
			return err
		}
	}
}

// meet checks that all threads are at the same barrier.
func (b *block) meet(done int) error {
	w := &b.warps[0]
	for i := range b.warps {
		o := &b.warps[i]
		if o.live != allLanes {
			return o.fault(b.barrierLine(), ^o.live, fmt.Errorf("barrier missed by a thread that returned, %d warps did", done))
		}
		if o.pc() != w.pc() {
			return o.fault(b.kernel.code[o.pc()-1].line, o.live, errors.New("warps wait at different barriers"))
		}
	}
	return b.shared.barrier()
}

// pc is where a waiting warp goes on.
func (w *warp) pc() int { return w.paths[len(w.paths)-1].pc }

// barrierLine is the line of a barrier at which some warp waits.
func (b *block) barrierLine() int {
	for i := range b.warps {
		if w := &b.warps[i]; len(w.paths) > 0 {
			return b.kernel.code[w.pc()-1].line
		}
	}
	return 0
}
