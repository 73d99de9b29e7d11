package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/verify"
)

// rebuildBlock is how many weights are decoded at a time when a source file is written again.
const rebuildBlock = 1 << 19

// A rebuilder writes source files again from a DF11 model: their headers, and their tensors' bytes decoded or copied. It
// is used by one goroutine.
type rebuilder struct {
	model   *DF11
	workers int
	places  map[string]place // by source tensor name
	units   map[string]*verify.Unit
}

// place says where the bytes of a source tensor are in the DF11 model.
type place struct {
	unit  *taskUnit // nil: stored under name
	elem  int64     // first weight in the unit
	name  string
	widen bool // BF16 to F32
}

// newRebuilder knows the places of all tensors of the plan.
func newRebuilder(d *DF11, tasks []*task, workers int) *rebuilder {
	r := &rebuilder{model: d, workers: max(1, workers), places: map[string]place{}, units: map[string]*verify.Unit{}}
	for _, t := range tasks {
		t.eachTensor(func(x plan.Tensor, at int64, u *taskUnit) {
			p := place{name: x.Name, widen: x.ExactF32}
			if u != nil {
				p.unit, p.elem = u, (at-u.at)/2
			}
			r.places[x.Source] = p
		})
		for _, s := range t.shadows {
			r.places[s.Source] = place{name: s.of.Name}
		}
	}
	return r
}

// file writes the source file with the given header.
func (r *rebuilder) file(ctx context.Context, h *safetensors.Header, w io.Writer) error {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(h.Raw)))
	if _, err := w.Write(append(length[:], h.Raw...)); err != nil {
		return err
	}
	for _, t := range h.ByOffset() {
		if err := r.tensor(ctx, t, w); err != nil {
			return fmt.Errorf("tensor %s: %w", t.Name, err)
		}
	}
	clear(r.units) // the next file has others
	return nil
}

func (r *rebuilder) tensor(ctx context.Context, t safetensors.Tensor, w io.Writer) error {
	p, ok := r.places[t.Name]
	if !ok {
		return wrongf("", "the plan has no place for it")
	}
	if p.widen {
		w = &widener{w: w}
	}
	if p.unit != nil {
		if u, err := r.unit(p.unit); err != nil {
			return err
		} else if u != nil {
			return r.decode(ctx, u, p.elem, t.NElems(), w)
		}
	}
	s, ok := r.model.section(p.name)
	if !ok {
		return wrongf("", "the DF11 model does not hold it")
	}
	n, err := io.Copy(w, contextReader{ctx, s})
	if err == nil && n != s.Size() {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// unit opens a unit of the model; nil if it is stored in BF16.
func (r *rebuilder) unit(u *taskUnit) (*verify.Unit, error) {
	if v, ok := r.units[u.Path]; ok {
		return v, nil
	}
	if !r.model.coded(u.Path) {
		return nil, nil
	}
	v, err := r.model.openUnit(u)
	if err != nil {
		return nil, fmt.Errorf("unit %s: %w", u.Path, err)
	}
	r.units[u.Path] = v
	return v, nil
}

// decode writes n weights of a unit, blocks in parallel, in order.
func (r *rebuilder) decode(ctx context.Context, u *verify.Unit, elem, n int64, w io.Writer) error {
	bufs := make([][]byte, r.workers)
	for i := range bufs {
		bufs[i] = make([]byte, 2*min(rebuildBlock, n))
	}
	for done := int64(0); done < n; {
		g, gctx := errgroup.WithContext(ctx)
		var parts [][]byte
		for i := 0; i < r.workers && done < n; i++ {
			m := min(rebuildBlock, n-done)
			part, from := bufs[i][:2*m], elem+done
			g.Go(func() error { return u.DecodeRange(gctx, from, m, part) })
			parts = append(parts, part)
			done += m
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, p := range parts {
			if _, err := w.Write(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// widener writes BF16 as the F32 values that they came from.
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

// prove rebuilds a source file and checks its sha256.
func (r *rebuilder) prove(ctx context.Context, path string, h *safetensors.Header, want string) error {
	sum := sha256.New()
	if err := r.file(ctx, h, sum); err != nil {
		return fmt.Errorf("rebuild %s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return wrongf("", "the rebuilt %s has sha256 %s, the original has %s", path, got, want)
	}
	return nil
}
