package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
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
	switch {
	case !g.isOpen():
		return ErrNoGPU
	case u == nil || u.nChunks == 0:
		return errNotOpen
	case src == nil:
		return errors.New("compare: there is no source")
	}
	j := gpuJob{gpu: g, id: g.nJobs.Add(1), unit: u, src: src, workers: opt.Workers}
	pieces := cutPieces(u, g.opt.slotSize)
	err := parallel(ctx, len(pieces), nSlots, func(i int) error { return j.piece(ctx, &pieces[i]) })
	switch {
	case !errors.Is(err, errLost):
		return opt.name(err, u.ends)
	case g.opt.Mode == GPURequire:
		return fmt.Errorf("%w: the GPU in use has failed: %w", ErrNoGPU, g.cause)
	}
	return fmt.Errorf("%w: %w", ErrGPULost, g.cause)
}

// gpuJob is the comparison of one unit on the GPU.
type gpuJob struct {
	gpu     *GPU
	id      uint64 // different for each job
	unit    *Unit
	src     io.ReaderAt
	workers int
}

// piece reads, decodes, and compares one piece in a slot. If a weight differs, it decodes the piece
// again. If that result is right, the device is at fault. After a fault it gives up the device.
func (j *gpuJob) piece(ctx context.Context, p *gpuPiece) error {
	s, err := j.gpu.acquire(ctx)
	if err != nil {
		return err
	}
	fault, err := j.once(ctx, s, p)
	if wrong, ok := errors.AsType[*MismatchError](err); ok {
		s.tables = 0 // the tables may be wrong, too
		if fault, err = j.once(ctx, s, p); fault == nil && err == nil {
			fault = fmt.Errorf("decoded a piece twice, and only the second time right: %w", wrong)
		}
	}
	if fault != nil {
		j.gpu.giveUp(fault)
		return errLost
	}
	j.gpu.free <- s
	return err
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

// stretches holds buffers for the source's weights.
var stretches = sync.Pool{New: func() any { return new([stretch]byte) }}

// compare compares decoded weights, [2n] bytes, with the source's weights from elem on.
func (j *gpuJob) compare(ctx context.Context, weights []byte, elem int64) error {
	return inStretches(ctx, len(weights), j.workers, func(from, to int) error {
		buffer := stretches.Get().(*[stretch]byte)
		defer stretches.Put(buffer)
		want := buffer[:to-from]
		if err := readAt(j.src, want, 2*elem+int64(from), "source"); err != nil {
			return err
		}
		if bytes.Equal(weights[from:to], want) {
			return nil
		}
		return firstMismatch(weights[from:to], want, elem+int64(from/2))
	})
}

// inStretches calls do for 0..n in stretches, in parallel. It returns the error of the first
// stretch that failed.
func inStretches(ctx context.Context, n, workers int, do func(from, to int) error) error {
	return parallel(ctx, (n+stretch-1)/stretch, workers,
		func(i int) error { return do(i*stretch, min((i+1)*stretch, n)) })
}
