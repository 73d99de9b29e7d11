package ptx

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"math/rand/v2"
)

const (
	warpSize = 32
	allLanes = 1<<warpSize - 1
)

// row is a register of all lanes of a warp.
type row [warpSize]uint64

// warp is 32 threads in lockstep.
type warp struct {
	block *block
	first int // thread number of lane 0
	rows  []row
	live  uint32 // lanes that have not returned

	// paths are the ways that split lanes take. The last one runs. When its lanes meet the other
	// lanes, it ends, and the path below it goes on.
	paths []path
}

// path is a set of lanes on their way from pc to meet.
type path struct {
	pc, meet int
	lanes    uint32
}

// lanes yields the numbers of the lanes in mask.
func lanes(mask uint32) iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; mask != 0; mask &= mask - 1 {
			// shows the compiler that it's an index into a row
			if !yield(first(mask) & (warpSize - 1)) {
				return
			}
		}
	}
}

// first returns the lowest lane of a mask.
func first(mask uint32) int { return bits.TrailingZeros32(mask) }

// start fills the registers and puts all lanes at the first instruction.
func (w *warp) start(rng *rand.Rand) {
	for i, start := range w.block.kernel.rows {
		r, noise := &w.rows[i], rng.Uint64()
		for lane := range r {
			if start.of != nil {
				r[lane] = start.of(w.block, w.first+lane)
				continue
			}
			noise = noise*6364136223846793005 + 1442695040888963407
			r[lane] = bits.ReverseBytes64(noise) & start.mask
		}
	}
	w.live = allLanes
	w.paths = append(w.paths[:0], path{0, len(w.block.kernel.code), allLanes})
}

// run executes the warp up to a barrier and returns the barrier's instruction, or -1 at the end.
func (w *warp) run() (barrier int, err error) {
	for len(w.paths) > 0 {
		p := &w.paths[len(w.paths)-1]
		active := p.lanes & w.live
		if p.pc == p.meet || active == 0 {
			w.paths = w.paths[:len(w.paths)-1]
			continue
		}
		pc := p.pc
		in, mask, err := w.step(pc, active)
		if err != nil {
			return -1, err
		}
		p.pc++
		switch in.flow {
		case flowBranch:
			w.branch(in, active, mask)
		case flowReturn:
			w.live &^= mask
		case flowBarrier:
			if mask != w.live {
				err = w.fault(pc, first(mask), fmt.Errorf("barrier reached by lanes %08x of %08x", mask, w.live))
			}
			return pc, err
		}
	}
	return -1, nil
}

// step executes the instruction at pc in the active lanes whose guards hold, and returns it with
// these lanes.
func (w *warp) step(pc int, active uint32) (in *instr, mask uint32, err error) {
	code := w.block.kernel.code
	if pc >= len(code) {
		return nil, 0, w.fault(len(code)-1, first(active), errors.New("no ret at the end"))
	}
	in = &code[pc]
	mask = active & w.guard(in)
	w.block.stats.WarpInstructions++
	if w.block.steps--; w.block.steps < 0 {
		return nil, 0, w.fault(pc, first(active), errors.New("step limit reached"))
	}
	if in.do != nil {
		if lane, err := in.do(w, mask); err != nil {
			return nil, 0, w.fault(pc, lane, err)
		}
	}
	return in, mask, nil
}

// guard returns the lanes for which an instruction's guards hold.
func (w *warp) guard(in *instr) uint32 {
	off := uint32(0)
	for _, g := range in.guards {
		for lane, v := range w.rows[g.row] {
			off |= uint32(v^g.want) << lane
		}
	}
	return ^off
}

// branch sends the lanes in mask to the target; the other active lanes go on. If that splits the
// lanes, the path is split, and its rest begins where they meet.
func (w *warp) branch(in *instr, active, mask uint32) {
	p := &w.paths[len(w.paths)-1]
	switch mask {
	case active:
		p.pc = in.target
		return
	case 0:
		return
	}
	next := p.pc
	if in.meet == p.meet {
		w.paths = w.paths[:len(w.paths)-1]
	} else {
		p.pc = in.meet
	}
	w.paths = append(w.paths, path{next, in.meet, active &^ mask}, path{in.target, in.meet, mask})
}

// fault makes a *Fault from an error of a lane at instruction pc.
func (w *warp) fault(pc, lane int, err error) error {
	k := w.block.kernel
	return &Fault{kernel: k.name, line: k.code[pc].line, block: w.block.index, thread: w.first + lane, err: err}
}
