// Package back turns a DF11 model back into its original: it checks what the model holds, decodes
// it, puts the original files together again, and compares the SHA-256 of each. It reads no weight
// of the original.
package back

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

// A Rebuilder writes original files from a DF11 model: their headers, and the bytes of their
// tensors, decoded or copied.
type Rebuilder struct {
	model    *model.DF11
	workers  int
	progress *progress.Counters
	// the pieces of each source tensor, in order: one, unless it's cut into slices
	places map[string][]place
	opened *openUnits // for ReaderAt
	// the exponents of the units of which Ends finds out how they end, in all rebuilt files
	watched unitCounts
	// the manifest says what to write, not the original
	byManifest bool

	// Outside writes a tensor that the model left out of a file; nil: there is none.
	Outside func(ctx context.Context, f model.File, t safetensors.Tensor, w io.Writer) error
}

func newRebuilder(d *model.DF11, workers int, p *progress.Counters) *Rebuilder {
	return &Rebuilder{model: d, workers: max(1, workers), progress: p, places: map[string][]place{},
		opened: newOpenUnits(d, maxOpenUnits)}
}

// A place is the location of a source tensor's bytes, or of a slice of them, in the DF11 model.
type place struct {
	unit   *spans.Unit // nil: the tensor is stored under its name
	elem   int64       // first weight in the unit
	nElems int64
	name   string
	widen  bool  // BF16 to F32
	offset int64 // of the first byte in the source's file
	alias  bool  // the same weights are in the place of another tensor
	part   bool  // of the tensor, if it isn't coded: size bytes of the stored one, from the byte at from
	from   int64
	size   int64
}

// NewRebuilder returns a Rebuilder for the files of a source's original. It takes the locations of
// all tensors from the outputs of the source's plan.
func NewRebuilder(d *model.DF11, outputs []*spans.Output, source *model.Model, workers int,
	p *progress.Counters) (*Rebuilder, error) {
	r := newRebuilder(d, workers, p)
	for _, o := range outputs {
		for t, u := range o.Tensors() {
			p := place{name: t.Name, widen: t.ExactF32, nElems: t.NElems(), offset: t.Offset}
			if u != nil {
				p.unit, p.elem = u, (t.At-u.At)/2
			}
			r.places[t.Source] = append(r.places[t.Source], p)
		}
		for _, a := range o.Aliases {
			p := place{name: a.Of.Name, widen: a.ExactF32, nElems: a.NElems(), alias: true}
			if a.Unit != nil {
				p.unit, p.elem = a.Unit, (a.Of.At-a.Unit.At)/2
			}
			r.places[a.Source] = []place{p}
		}
	}
	for _, pieces := range r.places {
		slices.SortFunc(pieces, func(a, b place) int { return cmp.Compare(a.offset, b.offset) })
	}
	if source.From != nil {
		return r, r.takeApart(source.Arrangement)
	}
	return r, nil
}

// filesAtOnce is how many files of a local model are rebuilt at once at most: hashing one file
// can't be divided, and takes longer than decoding it. Files from a Hub are rebuilt one at a time,
// because the network takes longer than both.
const filesAtOnce = 4

// Run rebuilds files into out, or without writing them if out is nil. It calls done for each file
// that has the original's SHA-256, one call at a time. A *RebuildError says which file the model
// can't restore.
func (r *Rebuilder) Run(ctx context.Context, files []model.File, out *Folder,
	done func(model.File) error) error {
	var size int64
	for _, f := range files {
		size += f.Size
	}
	r.progress.SourceBytes.Store(size)
	r.progress.OutputFiles.Store(int64(len(files)))
	atOnce := 1
	if !r.model.Remote() {
		atOnce = min(filesAtOnce, len(files), r.workers)
	}
	var reporting sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, atOnce))
	for _, f := range files {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var one *rebuild
			err := twice(ctx, r.model, func() error {
				one = &rebuild{r, f, max(1, r.workers/atOnce),
					newOpenUnits(r.model, maxOpenUnits), r.watched.begin()}
				return one.run(ctx, out)
			})
			if IsFault(err) {
				return &RebuildError{f.Path, err, r.byManifest}
			}
			if err != nil {
				return fmt.Errorf("rebuild %s: %w", f.Path, err)
			}
			reporting.Lock()
			defer reporting.Unlock()
			r.progress.Outputs.Add(1)
			r.watched.add(one.counts)
			return done(f)
		})
	}
	return g.Wait()
}

// twice calls f once more after a fault in bytes that came over the network, which may have changed
// them.
func twice(ctx context.Context, d *model.DF11, f func() error) error {
	err := f()
	if IsFault(err) && d.Refetch(ctx) {
		err = f()
	}
	return err
}

// A RebuildError says that a DF11 model can't restore a file as the original, or else the manifest,
// describes it.
type RebuildError struct {
	File       string
	Err        error
	ByManifest bool
}

func (e *RebuildError) Error() string { return "rebuild " + e.File + ": " + e.Err.Error() }

func (e *RebuildError) Unwrap() error { return e.Err }

// Subject returns model.OfModel if a module can't be decoded, and otherwise model.OfPair.
func (e *RebuildError) Subject() string {
	if _, ok := errors.AsType[*verify.StructureError](e.Err); ok {
		return model.OfModel
	}
	return model.OfPair
}

// IsFault reports whether an error says that a DF11 model is wrong, as opposed to unreadable.
func IsFault(err error) bool {
	structure, invalid := (*verify.StructureError)(nil), (*model.InvalidError)(nil)
	return errors.As(err, &structure) || errors.As(err, &invalid)
}

// A rebuild is the work on one file.
type rebuild struct {
	*Rebuilder
	model.File
	workers int
	units   *openUnits
	counts  unitCounts // of the exponents that were decoded
}

// run rebuilds the file. In a folder, the file gets its name at the end.
func (r *rebuild) run(ctx context.Context, out *Folder) error {
	f := r.File
	if out == nil {
		return r.write(ctx, io.Discard)
	}
	if out.Has(f) {
		r.progress.Verified.Add(f.Size)
		return nil
	}
	w, err := out.disk.Create(f.Path, f.Size)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	if err := r.write(ctx, io.NewOffsetWriter(w, 0)); err != nil {
		return err
	}
	return w.Commit(f.Size)
}

// write writes a file, and compares the SHA-256 of what it wrote with the original's.
func (r *rebuild) write(ctx context.Context, w io.Writer) error {
	f, sum := r.File, sha256.New()
	w = io.MultiWriter(w, sum, counter{r.progress})
	if _, err := w.Write(f.Header.Bytes()); err != nil {
		return err
	}
	for _, t := range f.Header.ByOffset() {
		if err := r.tensor(ctx, t, w); err != nil {
			return fmt.Errorf("tensor %s: %w", t.Name, err)
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		says := "original"
		if r.byManifest {
			says = "manifest"
		}
		return model.Invalidf("", "the file has sha256 %s, the %s has %s", got, says, f.SHA256)
	}
	return nil
}

// A counter counts rebuilt bytes as progress.
type counter struct{ *progress.Counters }

func (c counter) Write(b []byte) (int, error) {
	c.Verified.Add(int64(len(b)))
	c.Count(progress.Verify, int64(len(b)))
	return len(b), nil
}

func (r *rebuild) tensor(ctx context.Context, t safetensors.Tensor, w io.Writer) error {
	pieces, ok := r.places[t.Name]
	if !ok && r.Outside != nil {
		return r.Outside(ctx, r.File, t, w)
	}
	if !ok {
		return model.Invalidf("", "the plan has no place for it")
	}
	for _, p := range pieces {
		if err := r.piece(ctx, p, w); err != nil {
			return err
		}
	}
	return nil
}

// piece writes a tensor of the original, or a slice of one.
func (r *rebuild) piece(ctx context.Context, p place, w io.Writer) error {
	if p.widen {
		w = &widener{w: w}
	}
	if r.decodes(p) {
		if counts := r.counts[p.unit]; counts != nil && !p.alias {
			w = io.MultiWriter(w, counts)
		}
		u, err := r.units.open(p.unit)
		if err != nil {
			return fmt.Errorf("module %s: %w", p.unit.Path, err)
		}
		return u.WriteRange(ctx, w, p.elem, p.nElems, r.workers)
	}
	s, err := r.stored(p)
	if err != nil {
		return err
	}
	return streams.CopySection(ctx, w, s)
}

// A widener writes BF16 values as F32, as they were before they were narrowed.
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
