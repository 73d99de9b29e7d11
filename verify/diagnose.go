package verify

import (
	"cmp"
	"encoding/binary"
	"io"
)

// diagnose finds what is wrong with a chunk by decoding it slowly, as the GPU kernel does; the
// structure alone if src is nil.
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

// firstMismatch compares the codes of a chunk with its source.
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

// diagnoseNext looks at the chunk after a chunk whose only fault is that chunk's first gap, which
// can make it decode wrongly.
func (u *Unit) diagnoseNext(index int, src io.ReaderAt, cause *StructureError) error {
	r := chunkRange{index, 1}
	b := newBlock()
	defer blocks.Put(b)
	if err := u.load(b, r, src); err != nil {
		return err
	}
	d := b.chunk(&u.layout, 0)
	// only the weights count here, not the faults of the chunk
	_ = u.decodeAsKernel(&b.codes[0], &d)
	return cmp.Or(u.firstMismatch(&b.codes[0], &d, cause), error(cause))
}

// decodeAsKernel decodes chunk d exactly as a GPU does (docs/format.md §9): every window starts at
// its own gap, and its weights come behind those of earlier windows. c gets the exponents, up to
// the first window that would hang. The result is the first place where the chunk contradicts
// itself, or nil; it may be the first gap of the next chunk.
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

// fault keeps the first fault. pos counts from the start of the chunk for bits and windows.
func (k *kernelWalk) fault(array string, pos int64, format string, args ...any) {
	if k.first == nil {
		k.first = badAt(array, pos, format, args...)
	}
}

// done says that the last chunk has all its codes. The bits behind them are not meant to be codes.
func (k *kernelWalk) done() bool { return k.chunk.last && k.codes.n >= k.chunk.n }

// window decodes window w and compares where it starts with where the window before ended.
func (k *kernelWalk) window(w int) bool {
	c, d := k.codes, k.chunk
	pos := w*windowBits + gapAt(d.gaps, w)
	if w > 0 && pos != c.end {
		k.fault(arrayGaps, int64(d.index)*chunkWindows+int64(w),
			"%d, but the code before ends at bit %d of the window",
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

// finish judges the chunk as a whole: its number of weights and its end.
func (k *kernelWalk) finish() {
	c, d := k.codes, k.chunk
	if c.n != d.n {
		k.fault(arrayOutputPositions, int64(d.index)+1, "chunk of %d weights, its codes are %d",
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
			"%d, but the code before ends at bit %d of the window",
			gap, c.end-chunkBits)
	}
}
