package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/gather"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/internal/target"
)

// outRoom is what finished files that do not stay take of the disk until they are uploaded.
type outRoom struct {
	*spool.Budget
	leftovers map[string]*spool.Budget // whose share an output of an earlier run takes; nil where there was no room
}

// newOutRoom charges the leftovers of earlier runs: to the share of outputs, or where that is used up to what spools leave.
// They are uploaded whatever else waits, so this cannot block for ever.
func newOutRoom(stays bool, limit int64, spools *spool.Budget, leftovers []ledger.Output) *outRoom {
	if stays {
		return &outRoom{Budget: spool.NewBudget("disk", 0)}
	}
	r := &outRoom{spool.NewBudget("disk", limit), map[string]*spool.Budget{}}
	for _, o := range leftovers {
		if !o.Here {
			continue
		}
		r.leftovers[o.Path] = nil
		for _, b := range []*spool.Budget{r.Budget, spools} {
			if b.TryAcquire(o.Size) {
				r.leftovers[o.Path] = b
				break
			}
		}
	}
	return r
}

// uploaded gives back what an output has taken, whoever made it.
func (r *outRoom) uploaded(o ledger.Output) {
	b, leftover := r.leftovers[o.Path]
	switch {
	case !leftover:
		r.Release(o.Size)
	case b != nil:
		b.Release(o.Size)
	}
}

// A converter makes output files of complete tasks. One goroutine runs it; the parallelism is inside.
type converter struct {
	source   model.Source
	folder   *target.Folder
	room     *outRoom
	workers  int
	progress *progress.Counters
}

// made is an output file that has no final name yet.
type made struct {
	task   *fetch.Task
	file   *atomicfile.File
	size   int64
	layout *safetensors.Layout
	units  []ledger.Outcome
	sum    *hashing // nil before the comparer has begun it
}

// discard removes a file that will not be finished.
func (m *made) discard() {
	if m.sum != nil {
		m.sum.stop()
		<-m.sum.done // it reads the file
	}
	m.file.Cleanup()
}

// run makes one output file after the other.
func (c *converter) run(ctx context.Context, complete <-chan *fetch.Task, encoded chan<- *made) error {
	for t := range complete {
		m, err := c.convert(ctx, t)
		if err != nil {
			return fmt.Errorf("convert %s: %w", t.Path, orChanged(t, c.source, err))
		}
		if err := streams.Send(ctx, encoded, m); err != nil {
			m.discard()
			return err
		}
	}
	return nil
}

// convert ends pass 1 and writes the output file. On error nothing is left of the file.
func (c *converter) convert(ctx context.Context, t *fetch.Task) (*made, error) {
	coded, err := finishCounts(t)
	if err != nil {
		return nil, err
	}
	for {
		m, err := c.write(ctx, t, coded)
		// The limit on shared memory shows only while encoding. The unit then stays in BF16 and the file is laid out again.
		unsupported, ok := errors.AsType[*unitUnsupported](err)
		if !ok {
			return m, err
		}
		t.Reasons[unsupported.index] = string(unsupported.err.Reason)
		coded[unsupported.index] = nil
	}
}

// unitUnsupported is an encoder.UnsupportedError with the unit's place in its task.
type unitUnsupported struct {
	index int
	err   *encoder.UnsupportedError
}

func (e *unitUnsupported) Error() string { return e.err.Error() }

// finishCounts ends pass 1 of every unit. A nil entry is a unit that stays in BF16.
func finishCounts(t *fetch.Task) ([]*encoder.Unit, error) {
	coded := make([]*encoder.Unit, len(t.Units))
	for i, u := range t.Units {
		if t.Counters[i] == nil {
			continue
		}
		e, err := t.Counters[i].Finish()
		t.Counters[i] = nil // of a whole model they would take gigabytes
		if unsupported, ok := errors.AsType[*encoder.UnsupportedError](err); ok {
			t.Reasons[i] = string(unsupported.Reason)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", u.Path, err)
		}
		coded[i] = e
	}
	return coded, nil
}

// write makes the file and everything in it.
func (c *converter) write(ctx context.Context, t *fetch.Task, coded []*encoder.Unit) (*made, error) {
	layout, err := safetensors.NewLayout(t.Metadata, entries(t.Output, coded))
	if err != nil {
		return nil, err
	}
	if err := c.room.Acquire(ctx, layout.Size); err != nil {
		return nil, err
	}
	f, err := c.folder.Create(t.Path, layout.Size)
	if err != nil {
		return nil, err // which ends the attempt, and the room with it
	}
	m := &made{task: t, file: f, size: layout.Size, layout: layout}
	if err := c.fill(ctx, m, coded); err != nil {
		f.Cleanup()
		c.room.Release(layout.Size) // for the file that is laid out again
		return nil, err
	}
	return m, nil
}

// entries lists the tensors of the output file; the writer puts them in order.
func entries(o *spans.Output, coded []*encoder.Unit) []safetensors.Entry {
	var es []safetensors.Entry
	for i, u := range o.Units {
		if coded[i] == nil {
			for _, a := range u.Attrs {
				es = append(es, safetensors.Entry{Name: a.Name, DType: "BF16", Shape: a.Shape})
			}
			continue
		}
		for _, x := range coded[i].Tensors() {
			es = append(es, safetensors.Entry{Name: u.Path + "." + x.Name, DType: safetensors.DType(x.DType), Shape: x.Shape})
		}
	}
	for _, t := range o.Copied {
		es = append(es, safetensors.Entry{Name: t.Name, DType: t.StoredDType(), Shape: t.Shape})
	}
	return es
}

func (c *converter) fill(ctx context.Context, m *made, coded []*encoder.Unit) error {
	if _, err := m.file.WriteAt(m.layout.Header, 0); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	for i, u := range m.task.Units {
		r, err := c.unit(ctx, m, i, coded[i])
		if unsupported, ok := errors.AsType[*encoder.UnsupportedError](err); ok {
			return &unitUnsupported{i, unsupported}
		}
		if err != nil {
			return fmt.Errorf("module %s: %w", u.Path, err)
		}
		m.units = append(m.units, r)
	}
	for _, t := range m.task.Copied {
		if err := c.copyTensor(ctx, m, t); err != nil {
			return err
		}
	}
	return nil
}

// unit encodes a unit into its file, or copies its weights if DF11 can't hold it.
func (c *converter) unit(ctx context.Context, m *made, i int, e *encoder.Unit) (ledger.Outcome, error) {
	u := m.task.Units[i]
	r := ledger.Outcome{Path: u.Path, Status: metadata.DF11, Weights: u.NElems()}
	if e == nil {
		r.Status, r.Reason = metadata.BF16, m.task.Reasons[i]
		for t := range u.Tensors() {
			if err := c.copyTensor(ctx, m, t); err != nil {
				return r, err
			}
		}
		return r, nil
	}
	done := c.progress.Timed(progress.Encode)
	out := gather.New(m.file)
	src := io.NewSectionReader(m.task.Spool, u.At, 2*u.NElems())
	if err := e.Encode(ctx, src, destinations(out, m.layout, u.Path), c.workers); err != nil {
		return r, err
	}
	if err := out.Flush(); err != nil {
		return r, err
	}
	done(2 * u.NElems())
	c.progress.Encoded.Add(2 * u.NElems())
	s := e.Stats()
	r.Bits, r.TieBroken, r.Exponents = s.NBits, s.TieBroken, exponents(s.Histogram)
	return r, nil
}

// exponents are a histogram's counts from the first exponent that occurs to the last.
func exponents(counts [256]uint64) *metadata.Exponents {
	first, end := 0, len(counts)
	for ; first < end && counts[first] == 0; first++ {
	}
	for ; end > first && counts[end-1] == 0; end-- {
	}
	if first == end {
		return nil
	}
	return &metadata.Exponents{First: first, Counts: slices.Clone(counts[first:end])}
}

// destinations points the encoder's six outputs at their places in the file.
func destinations(w io.WriterAt, l *safetensors.Layout, path string) encoder.Dst {
	at := func(name string) io.WriterAt {
		t, _ := l.Lookup(path + "." + name)
		return io.NewOffsetWriter(w, l.DataStart()+t.Begin)
	}
	return encoder.Dst{
		LUTs: at(encoder.NameLUTs), EncodedExponent: at(encoder.NameEncodedExponent), SignMantissa: at(encoder.NameSignMantissa),
		OutputPositions: at(encoder.NameOutputPositions), Gaps: at(encoder.NameGaps), SplitPositions: at(encoder.NameSplitPositions),
	}
}

// copyTensor copies one tensor from the spool.
func (c *converter) copyTensor(ctx context.Context, m *made, t spans.Tensor) error {
	x, ok := m.layout.Lookup(t.Name)
	if !ok {
		panic("pipeline: internal error: tensor " + t.Name + " is not in the layout")
	}
	at := m.layout.DataStart() + x.Begin
	if err := streams.CopySection(ctx, io.NewOffsetWriter(m.file, at), io.NewSectionReader(m.task.Spool, t.At, x.NBytes())); err != nil {
		return fmt.Errorf("copy tensor %s: %w", t.Name, err)
	}
	c.progress.Encoded.Add(x.NBytes())
	return nil
}

// Coded reports whether a unit is in the file as DF11.
func (m *made) Coded(unitPath string) bool {
	_, ok := m.layout.Lookup(unitPath + "." + encoder.NameEncodedExponent)
	return ok
}

// Section is the bytes of a tensor as they are stored in the file.
func (m *made) Section(name string) (*io.SectionReader, bool) {
	t, ok := m.layout.Lookup(name)
	return io.NewSectionReader(m.file, m.layout.DataStart()+t.Begin, t.NBytes()), ok
}
