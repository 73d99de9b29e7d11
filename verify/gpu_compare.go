package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// stretch is how many bytes a worker reads or compares at once: they stay in its core's cache.
const stretch = 256 << 10

// Compare decodes a unit on the GPU and compares all 16 bits of every weight with src, as
// [Unit.Compare] does on the CPU. [Open] has found the unit's structure sound: with that the kernel
// always ends and stays within its buffers.
//
// opt is as for Unit.Compare; opt.Strict means nothing here. src is read concurrently; src and the
// unit are borrowed until Compare returns.
//
// A *[MismatchError] is the first of the unit, and its Cause is nil: the GPU shows no structure.
// After a fault of the GPU, the error of this and of every later call is [ErrGPULost], or ErrNoGPU
// with GPURequire.
func (g *GPU) Compare(ctx context.Context, u *Unit, src io.ReaderAt, opt CompareOptions) error {
	job := gpuJob{gpu: g, id: g.nJobs.Add(1), unit: u, src: src, workers: opt.Workers,
		pieces: cutPieces(u, g.opt.slotSize)}
	job.buffers.New = func() any { return new([stretch]byte) }
	err := job.run(ctx)
	switch {
	case !errors.Is(err, errLost):
		return opt.name(err, u.ends)
	case g.opt.Mode == GPURequire:
		return fmt.Errorf("%w: the one that was used is lost: %w", ErrNoGPU, g.cause)
	}
	return fmt.Errorf("%w: %w", ErrGPULost, g.cause)
}

// gpuJob is one unit on its way through the GPU.
type gpuJob struct {
	gpu     *GPU
	id      uint64 // no other job has it
	unit    *Unit
	src     io.ReaderAt
	workers int
	pieces  []gpuPiece
	buffers sync.Pool // *[stretch]byte
}

// run takes the pieces in order, as many at a time as there are slots. If the device is lost, the
// error is errLost, unless an earlier piece has shown something.
func (j *gpuJob) run(ctx context.Context) error {
	var lost atomic.Bool
	err := parallel(ctx, len(j.pieces), nSlots, func(i int) error {
		err := j.piece(ctx, &j.pieces[i])
		if errors.Is(err, errLost) {
			lost.Store(true)
			return nil
		}
		return err
	})
	if err == nil && lost.Load() {
		return errLost
	}
	return err
}

// piece reads, decodes and compares one piece in a slot. After a fault it gives the device up.
func (j *gpuJob) piece(ctx context.Context, p *gpuPiece) error {
	s, err := j.gpu.acquire(ctx)
	if err != nil {
		return err
	}
	fault, err := j.inSlot(ctx, s, p)
	if fault != nil {
		j.gpu.giveUp(fault)
		return errLost
	}
	j.gpu.free <- s
	return err
}

// inSlot does a piece. A piece with a weight that differs is decoded once more: if it is right
// then, the device is at fault.
func (j *gpuJob) inSlot(ctx context.Context, s *gpuSlot, p *gpuPiece) (fault, err error) {
	fault, err = j.once(ctx, s, p)
	wrong, ok := errors.AsType[*MismatchError](err)
	if !ok {
		return fault, err
	}
	s.tables = 0 // may be wrong as well
	if fault, err = j.once(ctx, s, p); fault == nil && err == nil {
		return fmt.Errorf("one piece decoded twice, and only the second time right: %w", wrong), nil
	}
	return fault, err
}

// once reads, decodes and compares a piece.
func (j *gpuJob) once(ctx context.Context, s *gpuSlot, p *gpuPiece) (fault, err error) {
	if err := p.fill(ctx, j.unit, s.host, j.workers); err != nil {
		return nil, err
	}
	if fault := s.decode(p, j.id); fault != nil {
		return fault, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, j.compare(ctx, s.weights(p), p.elem)
}

// compare compares decoded weights, [2n] bytes, with the source's from elem on.
func (j *gpuJob) compare(ctx context.Context, weights []byte, elem int64) error {
	return inStretches(ctx, len(weights), j.workers, func(from, to int) error {
		buffer := j.buffers.Get().(*[stretch]byte)
		defer j.buffers.Put(buffer)
		want := buffer[:to-from]
		if err := readAt(j.src, want, 2*elem+int64(from), "source"); err != nil {
			return err
		}
		got := weights[from:to]
		if bytes.Equal(got, want) {
			return nil
		}
		return firstWrongWeight(got, want, elem+int64(from/2))
	})
}

// firstWrongWeight finds it in stretches of weights that differ.
func firstWrongWeight(got, want []byte, elem int64) error {
	for i := 0; i+2 <= len(got); i += 2 {
		g, w := binary.LittleEndian.Uint16(got[i:]), binary.LittleEndian.Uint16(want[i:])
		if g != w {
			return &MismatchError{Elem: elem + int64(i/2), Got: g, Want: w}
		}
	}
	return errors.New("a buffer changed while it was compared")
}

// inStretches calls do for 0..n in stretches, in parallel. The error is that of the first stretch
// that has one.
func inStretches(ctx context.Context, n, workers int, do func(from, to int) error) error {
	return parallel(ctx, (n+stretch-1)/stretch, workers,
		func(i int) error { return do(i*stretch, min((i+1)*stretch, n)) })
}
