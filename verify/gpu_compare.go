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

// stretch is how many bytes a worker reads or compares at once. They stay in its core's cache.
const stretch = 256 << 10

// Compare decodes a unit on the GPU and compares all 16 bits of every weight with src, as
// [Unit.Compare] does on the CPU. [Open] has checked the unit's structure, so the kernel always
// ends and stays within its buffers.
//
// opt is as for Unit.Compare, but opt.Strict has no effect. Compare reads src concurrently, and
// borrows src and the unit until it returns.
//
// A *[MismatchError] is the first of the unit. If the GPU fails, this call and every later call return [ErrGPULost], or ErrNoGPU with
// GPURequire.
func (g *GPU) Compare(ctx context.Context, u *Unit, src io.ReaderAt, opt CompareOptions) error {
	job := gpuJob{gpu: g, id: g.nJobs.Add(1), unit: u, src: src, workers: opt.Workers,
		pieces: cutPieces(u, g.opt.slotSize)}
	job.buffers.New = func() any { return new([stretch]byte) }
	err := job.run(ctx)
	switch {
	case !errors.Is(err, errLost):
		return opt.name(err, u.ends)
	case g.opt.Mode == GPURequire:
		return fmt.Errorf("%w: the GPU in use has failed: %w", ErrNoGPU, context.Cause(g.lost))
	}
	return fmt.Errorf("%w: %w", ErrGPULost, context.Cause(g.lost))
}

// gpuJob is the comparison of one unit on the GPU.
type gpuJob struct {
	gpu     *GPU
	id      uint64 // different for each job
	unit    *Unit
	src     io.ReaderAt
	workers int
	pieces  []gpuPiece
	buffers sync.Pool // *[stretch]byte
}

// run takes the pieces in order, as many at a time as there are slots. If the device is lost, it
// returns errLost, unless an earlier piece had an error of its own.
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

// piece reads, decodes, and compares one piece in a slot. After a fault it gives up the device.
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

// inSlot decodes and compares a piece. If a weight differs, it decodes the piece again. If that
// result is right, the device is at fault.
func (j *gpuJob) inSlot(ctx context.Context, s *gpuSlot, p *gpuPiece) (fault, err error) {
	fault, err = j.once(ctx, s, p)
	wrong, ok := errors.AsType[*MismatchError](err)
	if !ok {
		return fault, err
	}
	s.tables = 0 // the tables may be wrong, too
	if fault, err = j.once(ctx, s, p); fault == nil && err == nil {
		return fmt.Errorf("decoded a piece twice, and only the second time right: %w", wrong), nil
	}
	return fault, err
}

// once reads, decodes, and compares a piece.
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

// compare compares decoded weights, [2n] bytes, with the source's weights from elem on.
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

// firstWrongWeight returns the first difference between two stretches of weights.
func firstWrongWeight(got, want []byte, elem int64) error {
	for i := 0; i+2 <= len(got); i += 2 {
		g, w := binary.LittleEndian.Uint16(got[i:]), binary.LittleEndian.Uint16(want[i:])
		if g != w {
			return &MismatchError{Elem: elem + int64(i/2), Got: g, Want: w}
		}
	}
	return errors.New("a buffer changed while it was compared")
}

// inStretches calls do for 0..n in stretches, in parallel. It returns the error of the first
// stretch that failed.
func inStretches(ctx context.Context, n, workers int, do func(from, to int) error) error {
	return parallel(ctx, (n+stretch-1)/stretch, workers,
		func(i int) error { return do(i*stretch, min((i+1)*stretch, n)) })
}
