package forward

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// draft is an output file that isn't compared with its source yet, and has no final name.
type draft struct {
	task   *fetch.Task
	file   *disk.File
	size   int64
	header *safetensors.Header
	units  []metadata.Unit

	verified []metadata.Verification // nil until the compare stage finds the file equal

	// waits for the SHA-256; nil until the compare stage starts it
	sum      func() (string, error)
	stopHash context.CancelFunc
}

// discard removes a file that won't be finished.
func (d *draft) discard() {
	if d.sum != nil {
		d.stopHash()
		_, _ = d.sum() // it reads the file
	}
	d.file.Cleanup()
}

// encode ends pass 1 and writes the output file. After an error, nothing is left of the file.
func (m *maker) encode(ctx context.Context, t *fetch.Task) (*draft, error) {
	coded, err := finishCounts(t)
	for err == nil {
		d, fault := m.write(ctx, t, coded)
		// The limit on shared memory shows only while encoding. The unit then stays in BF16, and
		// the file is laid out again.
		unsupported, ok := errors.AsType[*encoder.UnsupportedError](fault)
		if !ok {
			return d, m.failed("convert", t, fault)
		}
		i := len(d.units) // after those that succeeded
		t.Reasons[i], coded[i] = string(unsupported.Reason), nil
	}
	return nil, m.failed("convert", t, err)
}

// finishCounts ends pass 1 of every unit. A unit with a nil entry stays in BF16.
func finishCounts(t *fetch.Task) ([]*encoder.Unit, error) {
	coded := make([]*encoder.Unit, len(t.Units))
	for i, u := range t.Units {
		if t.Counters[i] == nil {
			continue
		}
		e, err := t.Counters[i].Finish()
		t.Counters[i] = nil // for a whole model, counters would take gigabytes
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

// write creates and fills the output file. After an error, d.units lists the units that succeeded.
func (m *maker) write(ctx context.Context, t *fetch.Task, coded []*encoder.Unit) (*draft, error) {
	header, err := safetensors.NewHeader(t.Metadata, entries(t.Output, coded))
	if err != nil {
		return nil, err
	}
	size := header.Size()
	if err := m.waiting.Acquire(ctx, size); err != nil {
		return nil, err
	}
	f, err := m.Folder.Create(t.Path, size)
	if err != nil {
		return nil, err // this ends the attempt, and the budget with it
	}
	d := &draft{task: t, file: f, size: size, header: header}
	if err := m.fill(ctx, d, coded); err != nil {
		f.Cleanup()
		m.waiting.Release(size) // for the file that is laid out again
		return d, err
	}
	return d, nil
}

// entries lists the tensors of the output file; the writer sorts them.
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
			es = append(es, safetensors.Entry{Name: u.Path + "." + x.Name,
				DType: safetensors.DType(x.DType), Shape: x.Shape})
		}
	}
	for _, t := range o.Copied {
		es = append(es, safetensors.Entry{Name: t.Name, DType: t.StoredDType(), Shape: t.Shape})
	}
	return es
}

func (m *maker) fill(ctx context.Context, d *draft, coded []*encoder.Unit) error {
	if _, err := d.file.WriteAt(d.header.Bytes(), 0); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	for i, u := range d.task.Units {
		r, err := m.unit(ctx, d, i, coded[i])
		if err != nil {
			return fmt.Errorf("module %s: %w", u.Path, err)
		}
		d.units = append(d.units, r)
	}
	for _, t := range d.task.Copied {
		if err := m.copyTensor(ctx, d, t); err != nil {
			return err
		}
	}
	return nil
}

// unit encodes a unit into its file, or copies its weights if DF11 can't hold it.
func (m *maker) unit(ctx context.Context, d *draft, i int, e *encoder.Unit) (metadata.Unit, error) {
	u := d.task.Units[i]
	r := metadata.Unit{Path: u.Path, Status: metadata.DF11, NWeights: u.NElems()}
	if e == nil {
		r.Status, r.Reason = metadata.BF16, d.task.Reasons[i]
		for t := range u.Tensors() {
			if err := m.copyTensor(ctx, d, t); err != nil {
				return r, err
			}
		}
		return r, nil
	}
	done := m.Progress.Timed(progress.Encode)
	out := disk.NewGather(d.file)
	src := io.NewSectionReader(d.task.Spool, u.At, u.NBytes())
	if err := e.Encode(ctx, src, destinations(out, d.header, u.Path),
		m.Workers); err != nil {
		return r, err
	}
	if err := out.Flush(); err != nil {
		return r, err
	}
	done(u.NBytes())
	m.Progress.Encoded.Add(u.NBytes())
	stats := e.Stats()
	r.CodedBits, r.TieBroken, r.Exponents = stats.NBits, stats.TieBroken,
		metadata.ExponentsOf(stats.Histogram)
	return r, nil
}

// destinations returns writers for the encoder's six arrays at their offsets in the file.
func destinations(f io.WriterAt, h *safetensors.Header, path string) encoder.Dst {
	return func(name string) io.WriterAt {
		t, _ := h.Lookup(path + "." + name)
		return io.NewOffsetWriter(f, h.DataStart()+t.Begin)
	}
}

// copyTensor copies one tensor from the spool.
func (m *maker) copyTensor(ctx context.Context, d *draft, t spans.Tensor) error {
	x, _ := d.header.Lookup(t.Name)
	at := d.header.DataStart() + x.Begin
	if err := streams.CopySection(ctx, io.NewOffsetWriter(d.file, at),
		io.NewSectionReader(d.task.Spool, t.At, x.NBytes())); err != nil {
		return fmt.Errorf("copy tensor %s: %w", t.Name, err)
	}
	m.Progress.Encoded.Add(x.NBytes())
	return nil
}

// Coded reports whether a unit is in the file as DF11.
func (d *draft) Coded(unitPath string) bool {
	_, ok := d.header.Lookup(unitPath + "." + encoder.NameEncodedExponent)
	return ok
}

// Section returns the bytes of a tensor as stored in the file.
func (d *draft) Section(name string) (*io.SectionReader, bool) {
	t, ok := d.header.Lookup(name)
	return io.NewSectionReader(d.file, d.header.DataStart()+t.Begin, t.NBytes()), ok
}
