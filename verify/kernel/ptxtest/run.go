package ptxtest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
)

// Launch says how to run a kernel. Grid and Block are one-dimensional; Block is a multiple of 32.
type Launch struct {
	Grid, Block int
	SharedBytes int      // dynamic shared memory
	Args        []uint64 // one per parameter: addresses from Memory, or numbers
	Seed        uint64   // of the noise, and of the order of blocks and warps
	MaxSteps    int64    // instructions of a block, counted per warp; 0 means 20 million
}

// Stats count what a launch did.
type Stats struct {
	WarpInstructions int64 // times 32: lane slots
	Barriers         int64 // per block
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

// Run launches the kernel and waits for its end. Blocks run one after the other, in an order that Seed decides. An error
// is a *[Fault], or says what is wrong with the launch.
func (k *Kernel) Run(m *Memory, l Launch) (Stats, error) {
	if err := k.check(l); err != nil {
		return Stats{}, err
	}
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

func (k *Kernel) check(l Launch) error {
	switch {
	case l.Grid < 1 || l.Block < 1 || l.Block%warpSize != 0 || l.Block > 1024:
		return fmt.Errorf("ptx: launch of %d blocks of %d threads", l.Grid, l.Block)
	case k.threads != 0 && l.Block > k.threads:
		return fmt.Errorf("ptx: blocks of %d threads; %s is compiled for %d", l.Block, k.name, k.threads)
	case len(l.Args) != k.nParams:
		return fmt.Errorf("ptx: %d arguments; %s takes %d", len(l.Args), k.name, k.nParams)
	case l.SharedBytes < 0 || l.SharedBytes > 1<<18:
		return fmt.Errorf("ptx: %d bytes of shared memory", l.SharedBytes)
	}
	return nil
}

// block is one block of threads while it runs. All blocks of a launch use the same one in turn.
type block struct {
	kernel *Kernel
	memory *Memory
	launch Launch
	index  int
	steps  int64 // left
	shared region
	warps  []warp
	stats  Stats // of all blocks so far
}

func newBlock(k *Kernel, m *Memory, l Launch) *block {
	b := &block{kernel: k, memory: m, launch: l, warps: make([]warp, l.Block/warpSize)}
	b.shared = region{name: "shared memory", bytes: make([]byte, l.SharedBytes), marks: make([]mark, l.SharedBytes)}
	for i := range b.warps {
		b.warps[i] = warp{block: b, first: i * warpSize, rows: make([]row, len(k.rows))}
	}
	return b
}

// start prepares the block to run as block i of the launch: noise everywhere, all threads at the first instruction.
func (b *block) start(i int, rng *rand.Rand) {
	b.index, b.steps = i, cmp.Or(b.launch.MaxSteps, 20e6)
	for j := range b.shared.bytes {
		b.shared.bytes[j] = uint8(rng.Uint32())
	}
	b.shared.beginInterval()
	for j := range b.warps {
		b.warps[j].start(rng)
	}
}

// run takes all warps from barrier to barrier until they are done.
func (b *block) run(rng *rand.Rand) error {
	for {
		barrier := -1 // where the warps wait
		for _, i := range rng.Perm(len(b.warps)) {
			w := &b.warps[i]
			at, err := w.run()
			switch {
			case err != nil:
				return err
			case at >= 0 && barrier >= 0 && at != barrier:
				return w.fault(at, 0, errors.New("warps wait at different barriers"))
			}
			barrier = max(barrier, at)
		}
		if barrier < 0 {
			return nil
		}
		for i := range b.warps {
			if w := &b.warps[i]; w.live != allLanes {
				return w.fault(barrier, first(^w.live), errors.New("barrier missed by a thread that returned"))
			}
		}
		b.stats.Barriers++
		b.shared.beginInterval()
	}
}
