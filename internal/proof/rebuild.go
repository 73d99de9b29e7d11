package proof

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

// rebuildElems is how many weights are decoded at a time when a source file is written again.
const rebuildElems = 1 << 19

// A Rebuilder writes source files again from a DF11 model: their headers, and their tensors' bytes, decoded or copied. One
// goroutine uses it.
type Rebuilder struct {
	model   *model.DF11
	workers int
	places  map[string]place        // by source tensor name
	units   map[string]*verify.Unit // of the current source file, by path
}

// place says where the bytes of a source tensor are in the DF11 model.
type place struct {
	unit  *spans.Unit // nil: the tensor is stored under its name
	elem  int64       // first weight in the unit
	name  string
	widen bool // BF16 to F32
}

// NewRebuilder takes the places of all tensors from a plan's outputs.
func NewRebuilder(d *model.DF11, outputs []*spans.Output, workers int) *Rebuilder {
	r := &Rebuilder{model: d, workers: max(1, workers), places: map[string]place{}, units: map[string]*verify.Unit{}}
	for _, o := range outputs {
		for t, u := range o.Tensors() {
			p := place{name: t.Name, widen: t.ExactF32}
			if u != nil {
				p.unit, p.elem = u, (t.At-u.At)/2
			}
			r.places[t.Source] = p
		}
		for _, a := range o.Aliases {
			r.places[a.Source] = place{name: a.Of.Name, widen: a.ExactF32}
		}
	}
	return r
}

// RebuildError says that a DF11 model does not give a source file back.
type RebuildError struct {
	File string
	Err  error
}

func (e *RebuildError) Error() string { return "rebuild " + e.File + ": " + e.Err.Error() }

func (e *RebuildError) Unwrap() error { return e.Err }

// Prove rebuilds a source file and compares its sha256 with want. The error is a *RebuildError if the model is at fault.
func (r *Rebuilder) Prove(ctx context.Context, path string, h *safetensors.Header, want string) error {
	err := r.Write(ctx, h, io.Discard, want)
	if err == nil {
		return nil
	}
	if isFault(err) {
		return &RebuildError{path, err}
	}
	return fmt.Errorf("rebuild %s: %w", path, err)
}

// Write writes the source file with the given header, and compares the sha256 of what it wrote with want.
func (r *Rebuilder) Write(ctx context.Context, h *safetensors.Header, w io.Writer, want string) error {
	sum := sha256.New()
	w = io.MultiWriter(w, sum)
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(h.Raw)))
	if _, err := w.Write(append(length, h.Raw...)); err != nil {
		return err
	}
	for _, t := range h.ByOffset() {
		if err := r.tensor(ctx, t, w); err != nil {
			return fmt.Errorf("tensor %s: %w", t.Name, err)
		}
	}
	clear(r.units) // the next file has other units
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return model.Invalidf("", "the file has sha256 %s, the original has %s", got, want)
	}
	return nil
}

func (r *Rebuilder) tensor(ctx context.Context, t safetensors.Tensor, w io.Writer) error {
	p, ok := r.places[t.Name]
	if !ok {
		return model.Invalidf("", "the plan has no place for it")
	}
	if p.widen {
		w = &widener{w: w}
	}
	if p.unit != nil && r.model.Coded(p.unit.Path) {
		u, err := r.open(p.unit)
		if err != nil {
			return fmt.Errorf("module %s: %w", p.unit.Path, err)
		}
		return r.decode(ctx, u, p.elem, t.NElems(), w)
	}
	s, ok := r.model.Section(p.name)
	if !ok {
		return model.Invalidf("", "the DF11 model does not hold it")
	}
	return streams.CopySection(ctx, w, s)
}

// open opens a unit of the model once for each file.
func (r *Rebuilder) open(u *spans.Unit) (*verify.Unit, error) {
	if opened, ok := r.units[u.Path]; ok {
		return opened, nil
	}
	opened, err := r.model.OpenUnit(u)
	if err != nil {
		return nil, err
	}
	r.units[u.Path] = opened
	return opened, nil
}

// decode writes n weights of a unit in order. As many blocks as there are workers are decoded in parallel.
func (r *Rebuilder) decode(ctx context.Context, u *verify.Unit, elem, n int64, w io.Writer) error {
	bufs := make([][]byte, r.workers)
	for i := range bufs {
		bufs[i] = make([]byte, 2*min(rebuildElems, n))
	}
	for done := int64(0); done < n; {
		g, gctx := errgroup.WithContext(ctx)
		var blocks [][]byte
		for i := 0; i < r.workers && done < n; i++ {
			m := min(rebuildElems, n-done)
			block, from := bufs[i][:2*m], elem+done
			g.Go(func() error { return u.DecodeRange(gctx, from, m, block) })
			blocks = append(blocks, block)
			done += m
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, b := range blocks {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// widener writes BF16 as the F32 values that were narrowed to it.
type widener struct {
	w   io.Writer
	buf []byte
}

func (x *widener) Write(p []byte) (int, error) {
	x.buf = x.buf[:0]
	for i := 0; i+2 <= len(p); i += 2 {
		x.buf = append(x.buf, 0, 0, p[i], p[i+1])
	}
	if _, err := x.w.Write(x.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}
