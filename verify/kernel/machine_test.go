package kernel

// The files machine_*_test.go run NVIDIA's machine code on the CPU, as ptxas makes it of a PTX text and nvdisasm prints it. They
// extend the interpreter of PTX: a kernel is made of the same instructions, over the same memory, launched in the same way,
// and watched for the same faults. So they find what the text does not show: what the assembler made of it, for each
// generation of GPUs.
//
// What differs is how the threads of a warp part and meet. In PTX that follows from the text. Machine code says it: BSSY notes
// in a barrier register which lanes are there, and at BSYNC lanes wait for all that their register names. Lanes that parted
// take turns: the ones that are behind go first.
//
// Nothing of this is documented by NVIDIA: what opcodes do was found from listings beside their PTX. An opcode, modifier or
// operand that is not known is an error when the listing is read. Time, caches and latencies are not modeled; steps and the
// cycles of shared memory are counted.

import (
	"errors"
	"fmt"
	"math"
)

// machine is what a kernel has that is machine code.
type machine struct {
	target    int // 90 for sm_90
	params    []machineParam
	paramBase uint64 // in the constant bank
}

// machineParam is where a parameter lies in the constant bank, behind paramBase, and how many bytes it has.
type machineParam struct{ at, size uint64 }

// sharedBase is the first address of a block's shared memory. From sm_90 on the system takes 1024 bytes before it.
func (m *machine) sharedBase() uint64 {
	if m.target >= 90 {
		return 1024
	}
	return 0
}

// constant reads a word of the constant bank: parameters, and what a launch tells of itself. All else is noise.
func (m *machine) constant(b *block, at uint64) uint64 {
	for i, p := range m.params {
		if from := m.paramBase + p.at; at >= from && at < from+p.size {
			return b.launch.args[i] >> (8 * (at - from)) & math.MaxUint32
		}
	}
	threads, grid, shared := uint64(0), uint64(0xc), uint64(0x2c)
	if m.target >= 100 {
		threads, grid, shared = 0x360, 0x370, 0x20c
	}
	switch at {
	case threads:
		return uint64(b.launch.block)
	case grid:
		return uint64(b.launch.grid)
	case shared:
		return uint64(b.launch.sharedBytes)
	}
	return (at + 1) * 0x9e3779b9 & math.MaxUint32
}

// runMachine is run for machine code: each lane is somewhere else, or waits.
func (w *warp) runMachine() (barrier int, err error) {
	for w.live != 0 {
		pc, active := w.behind()
		if active == 0 {
			return -1, w.fault(w.at[first(w.live)]-1, first(w.live), errors.New("lanes wait for lanes that do not come"))
		}
		in, mask, err := w.step(pc, active, "EXIT")
		if err != nil {
			return -1, err
		}
		for lane := range lanes(active) {
			w.at[lane] = pc + 1
		}
		switch in.flow {
		case flowBranch:
			for lane := range lanes(mask) {
				w.at[lane] = in.target
			}
		case flowReturn:
			w.live &^= mask
		case flowMeet:
			for lane := range lanes(mask) {
				w.meeting[lane] = in.meet
			}
			w.waiting |= mask
		case flowBarrier:
			if mask != w.live {
				err = w.fault(pc, first(mask), fmt.Errorf("barrier reached by lanes %08x of %08x", mask, w.live))
			}
			return pc, err
		}
		w.release()
	}
	return -1, nil
}

// behind returns the lanes that are farthest behind, among the lanes that do not wait.
func (w *warp) behind() (pc int, active uint32) {
	pc = math.MaxInt
	for lane := range lanes(w.live &^ w.waiting) {
		switch at := w.at[lane]; {
		case at < pc:
			pc, active = at, 1<<lane
		case at == pc:
			active |= 1 << lane
		}
	}
	return pc, active
}

// release lets lanes go on if all the lanes that they wait for have come.
func (w *warp) release() {
	w.waiting &= w.live
	released := uint32(0)
	for lane := range lanes(w.waiting) {
		together := uint32(0)
		for other := range lanes(w.waiting) {
			if w.at[other] == w.at[lane] {
				together |= 1 << other
			}
		}
		if uint32(w.rows[w.meeting[lane]][lane])&w.live&^together == 0 {
			released |= 1 << lane
		}
	}
	w.waiting &^= released
}
