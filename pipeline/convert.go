package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/gather"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/verify"
)

// Status words of a unit in ledger and manifest.
const (
	statusDF11 = "df11"
	statusBF16 = "bf16"
)

// GPU is the second decoder, where there is one. Compare is called by one goroutine at a time; it borrows its arguments.
// Its error is verify.ErrGPULost where no GPU works any more and none is required: the CPU's check then stands alone.
type GPU interface {
	Compare(ctx context.Context, a verify.Arrays, nElems int64, src io.ReaderAt, opt verify.CompareOptions) error
	// Describe names kernel and devices for the manifest.
	Describe() (kernel string, devices []string)
}

// A converter turns complete tasks into verified output files. One goroutine runs it; the parallelism is inside.
type converter struct {
	create   func(ctx context.Context, t *task, size int64) (*atomicfile.File, error)
	free     func(size int64) // gives back what create has reserved for a file that is not kept
	workers  int
	gpu      GPU  // nil: none
	strict   bool // our own output: bytes that decoding never reads must be right too
	progress *Progress
	gather   gather.Writer // what the encoder has written of the file
}

// built is an output file that was written and verified but has no final name yet.
type built struct {
	task   *task
	file   *atomicfile.File
	size   int64
	result []UnitResult
}

// convert writes a task's output file and proves it against the spool. On error nothing is left of the file.
func (c *converter) convert(ctx context.Context, t *task) (*built, error) {
	coded, err := finishCounts(t)
	if err != nil {
		return nil, err
	}
	for {
		b, err := c.write(ctx, t, coded)
		// The limit on shared memory shows only while encoding. The unit then stays in BF16 and the file is laid out again.
		unsupported := (*unitUnsupported)(nil)
		if !errors.As(err, &unsupported) {
			return b, err
		}
		t.units[unsupported.index].Unholdable = string(unsupported.err.Reason)
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
func finishCounts(t *task) ([]*encoder.Unit, error) {
	coded := make([]*encoder.Unit, len(t.units))
	for i, u := range t.units {
		if u.counter == nil {
			continue
		}
		e, err := u.counter.Finish()
		u.counter = nil // of a whole model they would take gigabytes
		if unsupported := (*encoder.UnsupportedError)(nil); errors.As(err, &unsupported) {
			u.Unholdable = string(unsupported.Reason)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("unit %s: %w", u.Path, err)
		}
		coded[i] = e
	}
	return coded, nil
}

// write makes the file and everything in it, then verifies it.
func (c *converter) write(ctx context.Context, t *task, coded []*encoder.Unit) (*built, error) {
	layout, err := safetensors.NewLayout(t.metadata, entries(t, coded))
	if err != nil {
		return nil, err
	}
	f, err := c.create(ctx, t, layout.Size)
	if err != nil {
		return nil, err
	}
	b := &built{task: t, file: f, size: layout.Size}
	if err := c.fill(ctx, b, layout, coded); err != nil {
		f.Cleanup()
		c.free(layout.Size)
		return nil, err
	}
	return b, nil
}

// entries lists the tensors of the output file; the writer puts them in order.
func entries(t *task, coded []*encoder.Unit) []safetensors.Entry {
	var es []safetensors.Entry
	for i, u := range t.units {
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
	for _, p := range t.plain {
		es = append(es, safetensors.Entry{Name: p.Name, DType: storedDType(p.Tensor), Shape: p.Shape})
	}
	return es
}

func (c *converter) fill(ctx context.Context, b *built, layout *safetensors.Layout, coded []*encoder.Unit) error {
	if _, err := b.file.WriteAt(layout.Header, 0); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	for i, u := range b.task.units {
		r, err := c.unit(ctx, b, layout, u, coded[i])
		if unsupported := (*encoder.UnsupportedError)(nil); errors.As(err, &unsupported) {
			return &unitUnsupported{i, unsupported}
		}
		if err != nil {
			return fmt.Errorf("unit %s: %w", u.Path, err)
		}
		b.result = append(b.result, r)
	}
	for _, p := range b.task.plain {
		if err := c.copyTensor(ctx, b, layout, p); err != nil {
			return err
		}
	}
	if err := checkShadows(ctx, b.task); err != nil {
		return err
	}
	stored, err := safetensors.ReadHeader(b.file, layout.Size)
	if err != nil {
		return fmt.Errorf("read header again: %w", err)
	}
	return lintFile(b.task, stored)
}

// unit encodes one unit and decodes it again from the stored bytes, or copies its weights if DF11 can't hold it.
func (c *converter) unit(ctx context.Context, b *built, layout *safetensors.Layout, u *taskUnit, e *encoder.Unit) (UnitResult, error) {
	r := UnitResult{Path: u.Path, Status: statusDF11, Weights: u.nElems()}
	if e == nil {
		r.Status, r.Reason = statusBF16, u.Unholdable
		return r, c.copyUnit(ctx, b, layout, u)
	}
	src := io.NewSectionReader(b.task.spool, u.at, 2*u.nElems())
	done := c.progress.timed(StageEncode)
	c.gather.Reset(b.file)
	if err := e.Encode(ctx, src, encoderDst(&c.gather, layout, u.Path), c.workers); err != nil {
		return r, err
	}
	if err := c.gather.Flush(); err != nil {
		return r, err
	}
	done(2 * u.nElems())
	c.progress.Encoded.Add(2 * u.nElems())
	var err error
	if r.GPU, err = c.proveBoth(ctx, u, storedArrays(b.file, layout, u.Path), src); err != nil {
		return r, err
	}
	s := e.Stats()
	r.Bits, r.TieBroken, r.Exponents = s.NBits, s.TieBroken, exponentsOf(s)
	return r, nil
}

// proveBoth decodes the stored arrays on the CPU, and on the GPU where there is one, and compares all 16 bits of every
// weight. The CPU's check can't be switched off.
func (c *converter) proveBoth(ctx context.Context, u *taskUnit, a verify.Arrays, src io.ReaderAt) (gpu bool, err error) {
	done := c.progress.timed(StageVerify)
	v, err := verify.Open(a, u.nElems(), u.sizes)
	if err != nil {
		return false, err
	}
	opt := u.compareOptions(c.workers)
	opt.Strict = c.strict
	if err := v.Compare(ctx, src, opt); err != nil {
		return false, err
	}
	if gpu, err = c.proveOnGPU(ctx, u, a, src, opt); err != nil {
		return false, fmt.Errorf("gpu: %w", err)
	}
	done(2 * u.nElems())
	c.progress.Verified.Add(2 * u.nElems())
	return gpu, nil
}

// proveOnGPU tells whether a GPU has compared the unit as well.
func (c *converter) proveOnGPU(ctx context.Context, u *taskUnit, a verify.Arrays, src io.ReaderAt, opt verify.CompareOptions) (bool, error) {
	if c.gpu == nil {
		return false, nil
	}
	err := c.gpu.Compare(ctx, a, u.nElems(), src, opt)
	if errors.Is(err, verify.ErrGPULost) {
		return false, nil
	}
	return err == nil, err
}

func (u *taskUnit) compareOptions(workers int) verify.CompareOptions {
	names := make([]string, len(u.Attrs))
	for i, a := range u.Attrs {
		names[i] = a.Name
	}
	return verify.CompareOptions{Unit: u.Path, Names: names, Sizes: u.sizes, Workers: workers}
}

// encoderDst points the encoder's six outputs at their places in the file.
func encoderDst(w io.WriterAt, l *safetensors.Layout, path string) encoder.Dst {
	at := func(name string) io.WriterAt {
		t, _ := l.Lookup(path + "." + name)
		return io.NewOffsetWriter(w, l.DataStart()+t.Begin)
	}
	return encoder.Dst{
		LUTs: at("luts"), EncodedExponent: at("encoded_exponent"), SignMantissa: at("sign_mantissa"),
		OutputPositions: at("output_positions"), Gaps: at("gaps"), SplitPositions: at("split_positions"),
	}
}

// tensorPlaces finds a tensor's bytes in a file.
type tensorPlaces interface {
	Lookup(name string) (safetensors.Tensor, bool)
	DataStart() int64
}

// storedArrays points the verifier at the six tensors of a unit in a file. A missing one is an empty section, which
// verify.Open refuses.
func storedArrays(r io.ReaderAt, l tensorPlaces, path string) verify.Arrays {
	at := func(name string) *io.SectionReader {
		t, _ := l.Lookup(path + "." + name)
		return io.NewSectionReader(r, l.DataStart()+t.Begin, t.NBytes())
	}
	return verify.Arrays{
		LUTs: at("luts"), EncodedExponent: at("encoded_exponent"), SignMantissa: at("sign_mantissa"),
		OutputPositions: at("output_positions"), Gaps: at("gaps"), SplitPositions: at("split_positions"),
	}
}

// copyUnit stores a unit's weights unchanged.
func (c *converter) copyUnit(ctx context.Context, b *built, l *safetensors.Layout, u *taskUnit) error {
	at := u.at
	for _, a := range u.Attrs {
		if err := c.copyTensor(ctx, b, l, placed{a, at}); err != nil {
			return err
		}
		at += spoolBytes(a)
	}
	return nil
}

// copyTensor copies one tensor from the spool and reads it back.
func (c *converter) copyTensor(ctx context.Context, b *built, l *safetensors.Layout, p placed) error {
	t, ok := l.Lookup(p.Name)
	if !ok {
		panic("pipeline: internal error: tensor " + p.Name + " is not in the layout")
	}
	n := t.NBytes()
	src := io.NewSectionReader(b.task.spool, p.at, n)
	dst := io.NewOffsetWriter(b.file, l.DataStart()+t.Begin)
	if m, err := io.CopyBuffer(dst, onlyReader{src}, make([]byte, min(n+1, blockBytes))); err != nil {
		return fmt.Errorf("copy tensor %s: %w", p.Name, err)
	} else if m != n {
		return fmt.Errorf("copy tensor %s: %w", p.Name, io.ErrUnexpectedEOF)
	}
	stored := io.NewSectionReader(b.file, l.DataStart()+t.Begin, n)
	if at, err := firstDifference(ctx, stored, io.NewSectionReader(b.task.spool, p.at, n), n); err != nil {
		return fmt.Errorf("verify tensor %s: %w", p.Name, err)
	} else if at >= 0 {
		return fmt.Errorf("verify tensor %s: byte %d was not stored as it was read: bad disk or memory, or a bug", p.Name, at)
	}
	c.progress.Encoded.Add(n)
	c.progress.Verified.Add(n)
	return nil
}

// onlyReader hides WriterTo, so that CopyBuffer uses the buffer that it is given.
type onlyReader struct{ io.Reader }

// firstDifference compares n bytes of a and b and gives the offset of the first that differs, or -1.
func firstDifference(ctx context.Context, a, b io.ReaderAt, n int64) (int64, error) {
	x, y := make([]byte, min(n, blockBytes)), make([]byte, min(n, blockBytes))
	for off := int64(0); off < n; off += blockBytes {
		if err := ctx.Err(); err != nil {
			return 0, context.Cause(ctx)
		}
		m := min(n-off, blockBytes)
		if err := readBoth(a, b, x[:m], y[:m], off); err != nil {
			return 0, err
		}
		if !bytes.Equal(x[:m], y[:m]) {
			i := int64(0)
			for x[i] == y[i] {
				i++
			}
			return off + i, nil
		}
	}
	return -1, nil
}

func readBoth(a, b io.ReaderAt, x, y []byte, off int64) error {
	if n, err := a.ReadAt(x, off); n < len(x) {
		return readError(err)
	}
	if n, err := b.ReadAt(y, off); n < len(y) {
		return readError(err)
	}
	return nil
}

// AliasError says that two tensors that the model ties differ in the source.
type AliasError struct {
	Name, Of string
	Byte     int64
}

func (e *AliasError) Error() string {
	return fmt.Sprintf("%s is tied to %s by the config, but byte %d differs", e.Name, e.Of, e.Byte)
}

// checkShadows compares each alias with the tensor that stands for it.
func checkShadows(ctx context.Context, t *task) error {
	for _, s := range t.shadows {
		a := io.NewSectionReader(t.spool, s.at, s.Length)
		b := io.NewSectionReader(t.spool, s.of.at, s.of.Length)
		if s.Length != s.of.Length {
			return &AliasError{s.Name, s.of.Name, min(s.Length, s.of.Length)}
		}
		at, err := firstDifference(ctx, a, b, s.Length)
		if err != nil {
			return fmt.Errorf("compare %s with %s: %w", s.Name, s.of.Name, err)
		}
		if at >= 0 {
			return &AliasError{s.Name, s.of.Name, at}
		}
	}
	return nil
}
