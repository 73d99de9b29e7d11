package ptx

import (
	"errors"
	"fmt"
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
	block *block
	first int // thread number of lane 0
	rows  []row
	preds []uint32
	live  uint32 // lanes that have not returned

	// paths are the ways that parted lanes take; the last one runs. Where its lanes come to the
	// place at which all that parted meet again, it ends, and the one below goes on.
	paths []path
}

// path is a set of lanes on their way from pc to meet.
type path struct {
	pc, meet int
	lanes    uint32
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
	for len(w.paths) > 0 {
		p := &w.paths[len(w.paths)-1]
		if p.pc == p.meet || p.lanes&w.live == 0 {
			w.paths = w.paths[:len(w.paths)-1]
			continue
		}
		if p.pc >= len(code) {
			return stateDone, w.fault(code[len(code)-1].line, p.lanes, errors.New("no ret at the end"))
		}
		in := &code[p.pc]
		active := p.lanes & w.live
		mask := active & w.guard(in)
		if err := w.block.count(p.pc, mask); err != nil {
			return stateDone, w.fault(in.line, active, err)
		}
		switch in.kind {
		case kindBranch:
			w.branch(in, active, mask)
			continue
		case kindReturn:
			w.live &^= mask
		case kindBarrier:
			p.pc++
			return stateBarrier, w.whole(in, mask)
		default:
			if lanes, err := w.execute(in, mask); err != nil {
				return stateDone, w.fault(in.line, lanes, err)
			}
		}
		p.pc++
	}
	return stateDone, nil
}

// guard gives the lanes for which an instruction is on.
func (w *warp) guard(in *instr) uint32 {
	switch {
	case in.guard < 0:
		return allLanes
	case in.negate:
		return ^w.preds[in.guard]
	}
	return w.preds[in.guard]
}

// branch sends the lanes in mask to the target and the other active ones on. Where they part, the
// path is split; its rest begins where they meet.
func (w *warp) branch(in *instr, active, mask uint32) {
	p := &w.paths[len(w.paths)-1]
	switch mask {
	case active:
		p.pc = in.target
		return
	case 0:
		p.pc++
		return
	}
	next := p.pc + 1
	if in.meet == p.meet {
		w.paths = w.paths[:len(w.paths)-1]
	} else {
		p.pc = in.meet
	}
	w.paths = append(w.paths, path{next, in.meet, active &^ mask}, path{in.target, in.meet, mask})
}

// whole checks that a barrier is reached by all lanes that are left.
func (w *warp) whole(in *instr, mask uint32) error {
	if mask != w.live {
		return w.fault(in.line, mask, fmt.Errorf("barrier reached by lanes %08x of %08x", mask, w.live))
	}
	return nil
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
