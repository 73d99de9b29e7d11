package ptx

import (
	"cmp"
	"errors"
	"math/rand/v2"
)

// block is a running block of threads. The blocks of a launch use the same one in turn.
type block struct {
	kernel *Kernel
	memory *Memory
	launch Launch
	index  int
	steps  int64 // steps left
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

// start prepares the block to run as block i of the launch: noise everywhere, and all threads at
// the first instruction.
func (b *block) start(i int, rng *rand.Rand) {
	b.index, b.steps = i, cmp.Or(b.launch.MaxSteps, 20e6)
	for j := range b.shared.bytes {
		b.shared.bytes[j] = uint8(rng.Uint32())
	}
	b.shared.beginInterval()
	if !b.launch.Corrupt {
		b.shared.begin = b.shared.interval
	}
	for j := range b.warps {
		b.warps[j].start(rng)
	}
}

// run takes all warps from barrier to barrier until they end.
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
