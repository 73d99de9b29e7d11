package ptx

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

const (
	warpSize = 32
	allLanes = 1<<warpSize - 1
)

// row is a register of all lanes of a warp.
type row [warpSize]uint64

// warp is 32 threads in lockstep.
type warp struct {
	block  *block
	first  int // thread number of lane 0
	rows   []row
	preds  []uint32
	live   uint32 // lanes that have not returned
	active uint32 // lanes that execute now
	parked uint32 // lanes that wait for the others of the warp at a barrier or a shuffle
	pc     int    // of the active lanes
	next   int    // the lowest instruction of the lanes that neither execute nor are parked
	stuck  error  // lanes wait for each other at different places
	pcs    [warpSize]int
	counts *Stats
}

// state says why a warp stopped.
type state uint8

const (
	stateDone state = iota
	stateBarrier
)

// run executes the warp up to a barrier, its end or a fault.
func (w *warp) run() (state, error) {
	code := w.block.kernel.code
	for w.live != 0 {
		if w.stuck != nil {
			return stateDone, w.stuck
		}
		if w.pc >= len(code) {
			return stateDone, w.fault(code[len(code)-1].line, w.active, errors.New("no ret at the end"))
		}
		in := &code[w.pc]
		if err := w.block.step(); err != nil {
			return stateDone, w.fault(in.line, w.active, err)
		}
		w.counts.WarpInstructions++
		mask := w.active
		if in.guard >= 0 {
			p := w.preds[in.guard]
			if in.negate {
				p = ^p
			}
			mask &= p
		}
		w.counts.LaneInstructions += int64(bits.OnesCount32(mask))
		switch in.kind {
		case kindBranch:
			w.branch(in, mask)
			continue
		case kindReturn:
			w.pc++
			w.exit(mask)
			continue
		case kindBarrier, kindShuffle:
			if mask != w.live && w.active != w.live {
				w.park()
				continue
			}
		}
		if in.kind == kindBarrier {
			w.pc++
			return stateBarrier, w.whole(in, mask)
		}
		if lanes, err := w.execute(in, mask); err != nil {
			return stateDone, w.fault(in.line, lanes, err)
		}
		w.pc++
		if w.pc >= w.next {
			w.schedule()
		}
	}
	return stateDone, nil
}

// branch sends the lanes in mask to the target and the other active ones on.
func (w *warp) branch(in *instr, mask uint32) {
	switch mask {
	case w.active:
		w.pc = in.target
	case 0:
		w.pc++
	default:
		for m := mask; m != 0; m &= m - 1 {
			w.pcs[bits.TrailingZeros32(m)] = in.target
		}
		w.active &^= mask
		w.pc++
		w.next = min(w.next, in.target)
	}
	if w.pc >= w.next {
		w.schedule()
	}
}

// exit ends the lanes in mask.
func (w *warp) exit(mask uint32) {
	w.live &^= mask
	w.active &^= mask
	if w.active == 0 || w.pc >= w.next {
		w.schedule()
	}
}

// park makes the active lanes wait until all lanes of the warp are here: a compiler may lay out code
// so that some come later although nothing keeps them away.
func (w *warp) park() {
	for m := w.active; m != 0; m &= m - 1 {
		w.pcs[bits.TrailingZeros32(m)] = w.pc
	}
	w.parked |= w.active
	w.active = 0
	w.schedule()
}

// whole checks that a barrier is reached by all lanes that are left.
func (w *warp) whole(in *instr, mask uint32) error {
	if mask != w.live {
		return w.fault(in.line, mask, fmt.Errorf("barrier reached by lanes %08x of %08x", mask, w.live))
	}
	return nil
}

// schedule picks the lanes that are furthest behind. When all lanes are parked they go on together.
func (w *warp) schedule() {
	for m := w.active; m != 0; m &= m - 1 {
		w.pcs[bits.TrailingZeros32(m)] = w.pc
	}
	w.pick(w.live &^ w.parked)
	if w.active != 0 || w.live == 0 {
		return
	}
	w.parked = 0
	w.pick(w.live)
	if w.active != w.live {
		line := w.block.kernel.code[w.pc].line
		w.stuck = w.fault(line, w.active, fmt.Errorf("barrier or shuffle reached by lanes %08x of %08x", w.active, w.live))
	}
}

// pick makes those of lanes active that are at the lowest instruction.
func (w *warp) pick(lanes uint32) {
	w.pc, w.next, w.active = math.MaxInt, math.MaxInt, 0
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		switch pc := w.pcs[lane]; {
		case pc < w.pc:
			w.next, w.pc, w.active = w.pc, pc, 1<<lane
		case pc == w.pc:
			w.active |= 1 << lane
		default:
			w.next = min(w.next, pc)
		}
	}
}

// execute runs one instruction that neither branches nor waits. On an error, lanes are those at fault.
func (w *warp) execute(in *instr, mask uint32) (lanes uint32, err error) {
	switch in.kind {
	case kindALU:
		w.alu(in, mask)
	case kindSetp:
		w.compare(in, mask)
	case kindPred:
		w.setPred(in.dst, in.onMasks(w.preds[in.a], w.preds[in.b]), mask)
	case kindSelp:
		w.choose(in, mask)
	case kindLoad, kindStore:
		return w.access(in, mask)
	case kindShuffle:
		return mask, w.shuffle(in, mask)
	}
	return 0, nil
}

func (w *warp) alu(in *instr, mask uint32) {
	dst, a, b, c := &w.rows[in.dst], &w.rows[in.a], &w.rows[in.b], &w.rows[in.c]
	f := in.eval
	if mask == allLanes {
		for l := range dst {
			dst[l] = f(a[l], b[l], c[l])
		}
		return
	}
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		dst[l] = f(a[l], b[l], c[l])
	}
}

func (w *warp) setPred(p int, value, mask uint32) { w.preds[p] = w.preds[p]&^mask | value&mask }

func (w *warp) compare(in *instr, mask uint32) {
	a, b, r := &w.rows[in.a], &w.rows[in.b], uint32(0)
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		r |= uint32(in.eval(a[l], b[l], 0)) << l
	}
	if in.d >= 0 {
		r = in.onMasks(r, w.preds[in.d])
	}
	w.setPred(in.dst, r, mask)
}

func (w *warp) choose(in *instr, mask uint32) {
	dst, a, b, p := &w.rows[in.dst], &w.rows[in.a], &w.rows[in.b], w.preds[in.d]
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if p>>l&1 != 0 {
			dst[l] = a[l]
		} else {
			dst[l] = b[l]
		}
	}
}

// access runs a load or a store, lane by lane.
func (w *warp) access(in *instr, mask uint32) (lanes uint32, err error) {
	var buf [4]uint64
	values := buf[:len(in.vec)]
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		address := w.rows[in.a][l] + in.off
		if in.kind == kindStore {
			for i, r := range in.vec {
				values[i] = w.rows[r][l]
			}
			err = w.store(in, address, values, w.first+l)
		} else {
			err = w.load(in, address, values, w.first+l)
			for i, r := range in.vec {
				w.rows[r][l] = values[i]
			}
		}
		if err != nil {
			return 1 << l, err
		}
	}
	return 0, nil
}

func (w *warp) load(in *instr, address uint64, values []uint64, thread int) error {
	if in.space == spaceShared {
		return w.block.shared.load(address, in.size, values, uint32(thread))
	}
	return w.block.memory.load(address, in.size, values, w.block.globalThread(thread))
}

func (w *warp) store(in *instr, address uint64, values []uint64, thread int) error {
	if in.space == spaceShared {
		return w.block.shared.store(address, in.size, values, uint32(thread))
	}
	return w.block.memory.store(address, in.size, values, w.block.globalThread(thread))
}

// shuffle passes values between lanes. All lanes that the member mask names must take part.
func (w *warp) shuffle(in *instr, mask uint32) error {
	from := w.rows[in.a]
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if members := uint32(w.rows[in.d][l]); members&^mask != 0 {
			return fmt.Errorf("shuffle for lanes %08x reached by %08x", members, mask)
		}
		w.rows[in.dst][l] = from[in.source(l, int(w.rows[in.b][l]), int(w.rows[in.c][l]))&31]
	}
	return nil
}

// fault makes a Fault of an error of the first of lanes.
func (w *warp) fault(line int, lanes uint32, err error) error {
	return &Fault{
		Kernel: w.block.kernel.name, Line: line, Block: w.block.index,
		Thread: w.first + bits.TrailingZeros32(lanes), Err: err,
	}
}
