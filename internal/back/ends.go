package back

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// Rebuilding proves weights. It doesn't prove that a unit is stored as a conversion stores it:
// another code decodes to the same weights, some bytes are never decoded, and weights that DF11 can
// hold may be stored in BF16. Nor does it prove what someone says about a unit. So this file finds
// out from the weights how a conversion ends each unit, and compares it with what is stored.

// unitCounts are the exponents of units that are stored as DF11, as far as they were decoded.
type unitCounts map[*spans.Unit]*exponents

// exponents counts what is written to it, BF16 weights.
type exponents [256]uint64

func (e *exponents) Write(bf16 []byte) (int, error) {
	encoder.CountExponents((*[256]uint64)(e), bf16)
	return len(bf16), nil
}

// Watch makes Run count the exponents of the units of outputs, for Ends. Run then has to rebuild
// every file that these outputs hold a tensor of.
func (r *Rebuilder) Watch(outputs []*spans.Output) {
	r.watched = unitCounts{}
	for _, o := range outputs {
		for _, u := range o.Units {
			if r.model.Coded(u.Path) {
				r.watched[u] = new(exponents)
			}
		}
	}
}

// begin returns empty counts of the same units, for a file.
func (c unitCounts) begin() unitCounts {
	counts := make(unitCounts, len(c))
	for u := range c {
		counts[u] = new(exponents)
	}
	return counts
}

// add adds the counts of a file that was rebuilt.
func (c unitCounts) add(file unitCounts) {
	for u, counts := range file {
		for i, n := range counts {
			c[u][i] += n
		}
	}
}

// Ends returns how a conversion ends each unit of an output that Run has watched, and compares all
// stored bytes that no weight depends on with what it writes. The error is a fault (IsFault) if
// they differ.
func (r *Rebuilder) Ends(ctx context.Context, o *spans.Output) (units []metadata.Unit, err error) {
	err = twice(ctx, r.model, func() error {
		units = nil
		for _, u := range o.Units {
			end, err := r.end(ctx, u)
			if err != nil {
				return fmt.Errorf("module %s: %w", u.Path, err)
			}
			units = append(units, end)
		}
		return nil
	})
	return units, err
}

func (r *Rebuilder) end(ctx context.Context, u *spans.Unit) (end metadata.Unit, err error) {
	end = metadata.Unit{Path: u.Path, Status: metadata.DF11, NWeights: u.NElems()}
	counts := r.watched[u]
	if counts == nil {
		end.Status = metadata.BF16
		end.Reason, err = r.keptBecause(ctx, u)
		return end, err
	}
	var n uint64
	for _, count := range counts {
		n += count
	}
	if n != uint64(u.NElems()) {
		return end, fmt.Errorf("%d of %d weights were decoded; this is a bug", n, u.NElems())
	}
	luts, stats, err := encoder.Tables(*counts)
	if unsupported, ok := errors.AsType[*encoder.UnsupportedError](err); ok {
		return end, model.Invalidf("", "it's stored as DF11, but %v", unsupported)
	}
	if err != nil {
		return end, err
	}
	end.CodedBits, end.TieBroken = stats.NBits, stats.TieBroken
	end.Exponents = metadata.ExponentsOf(stats.Histogram)
	if err := r.compareLUTs(u, luts); err != nil {
		return end, err
	}
	stored, err := r.model.OpenAlone(ctx, u.Path)
	if err != nil {
		return end, err
	}
	warning, err := stored.CheckUnread()
	if warning != nil {
		err = warning
	}
	return end, err
}

// compareLUTs compares the stored tables of a unit with those of its weights.
func (r *Rebuilder) compareLUTs(u *spans.Unit, luts []byte) error {
	stored, ok := r.model.Section(u.Path + "." + encoder.NameLUTs)
	differ := !ok || stored.Size() != int64(len(luts))
	if !differ {
		b := make([]byte, len(luts))
		if err := streams.ReadFull(stored, b, 0); err != nil {
			return err
		}
		differ = !bytes.Equal(b, luts)
	}
	if differ {
		return model.Invalidf("", "its luts are not those of its weights")
	}
	return nil
}

// keptBecause returns the limit that keeps the weights of a unit in BF16.
func (r *Rebuilder) keptBecause(ctx context.Context, u *spans.Unit) (reason string, err error) {
	err = r.encode(ctx, u)
	if unsupported, ok := errors.AsType[*encoder.UnsupportedError](err); ok {
		return string(unsupported.Reason), nil
	}
	if err == nil {
		err = model.Invalidf("", "it's stored as BF16, but DF11 can hold it")
	}
	return "", err
}

// encode encodes a unit that is stored in BF16, and stores nothing: the limit on shared memory shows
// only then.
func (r *Rebuilder) encode(ctx context.Context, u *spans.Unit) error {
	counter, err := encoder.NewCounter(u.Sizes())
	if err != nil {
		return err
	}
	stored := &storedUnit{r.model, u}
	if err := countAll(ctx, counter, stored); err != nil {
		return err
	}
	unit, err := counter.Finish()
	if err != nil {
		return err
	}
	return unit.Encode(ctx, stored, nowhere, r.workers)
}

func countAll(ctx context.Context, c *encoder.Counter, from *storedUnit) error {
	buf := streams.GetBlock()
	defer streams.PutBlock(buf)
	for at, end := int64(0), from.unit.NBytes(); at < end; at += int64(len(buf)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p := buf[:min(int64(len(buf)), end-at)]
		if _, err := from.ReadAt(p, at); err != nil {
			return err
		}
		c.Add(at/2, p)
	}
	return nil
}

// nowhere takes the arrays of a unit that isn't stored.
func nowhere(string) io.WriterAt { return discard{} }

type discard struct{}

func (discard) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// A storedUnit reads the weights of a unit that is stored in BF16, one tensor after the other.
type storedUnit struct {
	model *model.DF11
	unit  *spans.Unit
}

func (s *storedUnit) ReadAt(p []byte, off int64) (n int, err error) {
	for t := range s.unit.Tensors() {
		begin := t.At - s.unit.At
		if off < begin || off >= begin+t.SpoolBytes() || n == len(p) {
			continue
		}
		section, ok := s.model.Section(t.Name)
		if !ok {
			return n, model.Invalidf("", "it lacks tensor %s", t.Name)
		}
		m := min(int64(len(p)-n), begin+t.SpoolBytes()-off)
		if err := streams.ReadFull(section, p[n:n+int(m)], off-begin); err != nil {
			return n, err
		}
		n, off = n+int(m), off+m
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}
