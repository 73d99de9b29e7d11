package verify

import (
	"cmp"
	"encoding/binary"
	"io"
)

// diagnose finds what is wrong with a chunk by decoding it slowly, as the GPU kernel does. If src
// is nil, it checks only the structure.
func (u *Unit) diagnose(c *codes, d *chunkData, src io.ReaderAt) error {
	cause := u.decodeAsKernel(c, d)
	if src != nil {
		if err := u.firstMismatch(c, d, cause); err != nil {
			return err
		}
	}
	if cause == nil {
		panic("verify: internal error: the decoders disagree")
	}
	if src != nil && cause.Array == arrayGaps && cause.Pos == int64(d.index+1)*chunkWindows {
		return u.diagnoseNext(d.index+1, src, cause)
	}
	return cause
}

// firstMismatch compares the codes of a chunk with the source.
func (l *layout) firstMismatch(c *codes, d *chunkData, cause *StructureError) error {
	for i := range min(c.n, d.n) {
		got, want := weight(c.exponents[i], d.sm[i]), binary.LittleEndian.Uint16(d.bf16[2*i:])
		if got != want {
			return &MismatchError{Elem: int64(l.positions[d.index]) + int64(i), Got: got,
				Want: want, Cause: cause}
		}
	}
	return nil
}

// diagnoseNext checks the chunk at index. The chunk before it has only one fault, the first gap of
// this chunk, and a wrong gap can make this chunk decode wrongly.
func (u *Unit) diagnoseNext(index int, src io.ReaderAt, cause *StructureError) error {
	r := chunkRange{index, 1}
	b := newBlock()
	defer blocks.Put(b)
	if err := u.load(b, r, src); err != nil {
		return err
	}
	d := b.chunk(&u.layout, 0)
	// only the weights count here, not the chunk's own faults
	_ = u.decodeAsKernel(&b.codes[0], &d)
	return cmp.Or(u.firstMismatch(&b.codes[0], &d, cause), error(cause))
}

// decodeAsKernel decodes chunk d exactly as a GPU does (docs/format.md §9): every window starts at
// its own gap, and its weights come after those of earlier windows. c gets the exponents, up to the
// first window that would hang. The result is the first place where the chunk contradicts itself,
// or nil. That place may be the first gap of the next chunk.
func (u *Unit) decodeAsKernel(c *codes, d *chunkData) *StructureError {
	k := kernelWalk{unit: u, codes: c, chunk: d}
	c.reset()
	if !d.startsWell() {
		k.fault(arrayGaps, 0, "%d, but the first code starts at 0", d.start())
	}
	for w := 0; w < chunkWindows && !k.done(); w++ {
		if !k.window(w) {
			return k.first
		}
	}
	k.finish()
	return k.first
}

// kernelWalk is the state of decodeAsKernel.
type kernelWalk struct {
	unit  *Unit
	codes *codes
	chunk *chunkData
	first *StructureError
}

// fault keeps the first fault.
func (k *kernelWalk) fault(array string, pos int64, format string, args ...any) {
	if k.first == nil {
		k.first = badAt(array, pos, format, args...)
	}
}

// done reports whether the last chunk has all its codes. The bits after them aren't codes.
func (k *kernelWalk) done() bool { return k.chunk.last && k.codes.n >= k.chunk.n }

// window decodes window w and checks that it starts where the window before ended. It reports
// whether every lookup found a code.
func (k *kernelWalk) window(w int) bool {
	c, d := k.codes, k.chunk
	pos := w*windowBits + gapAt(d.gaps, w)
	if w > 0 && pos != c.end {
		k.fault(arrayGaps, int64(d.index)*chunkWindows+int64(w),
			"%d, but the previous code ends at bit %d of the window",
			pos-w*windowBits, c.end-w*windowBits)
	}
	limit := maxCodes
	if d.last {
		limit = d.n
	}
	if !c.decodeMore(k.unit.tables, d.stream, pos, (w+1)*windowBits, limit) {
		k.fault(arrayEncodedExponent, int64(d.index)*chunkBits+int64(c.end),
			"no code; a GPU would hang")
		return false
	}
	return true
}

// finish checks the chunk as a whole: its number of weights and its end.
func (k *kernelWalk) finish() {
	c, d := k.codes, k.chunk
	if c.n != d.n {
		k.fault(arrayOutputPositions, int64(d.index)+1, "chunk of %d weights has %d codes",
			d.n, c.n)
	}
	if d.last {
		if err := k.unit.checkEnd(c, d); err != nil && k.first == nil {
			k.first = err
		}
		return
	}
	if gap := gapAt(d.gaps, chunkWindows); c.end-chunkBits != gap {
		k.fault(arrayGaps, int64(d.index+1)*chunkWindows,
			"%d, but the previous code ends at bit %d of the window",
			gap, c.end-chunkBits)
	}
}
