package proof

import (
	"context"
	"io"
	"slices"
	"sort"

	"github.com/df11-convert/df11-convert/internal/exactf32"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// sample compares some chunks of every unit that is stored as DF11.
func (v *verification) sample(ctx context.Context) error {
	for _, o := range v.outputs {
		source := v.sourceBytes(ctx, o)
		for _, u := range o.Units {
			if !v.DF11.Coded(u.Path) {
				continue
			}
			opened, err := v.DF11.OpenUnit(u)
			if err != nil {
				return err
			}
			weights := io.NewSectionReader(source, u.At, 2*u.NElems())
			if err := opened.CompareSample(ctx, weights, compareOptions(u, v.Workers), v.Chunks, v.Seed); err != nil {
				return err
			}
		}
	}
	return nil
}

// sourceBytes reads the source bytes of one output at random, straight from the original. Offsets are those of the output's
// spool, and even, like lengths, in tensors that are narrowed.
type sourceBytes struct {
	ctx     context.Context //nolint:containedctx // io.ReaderAt has no room for one; the value lives as long as one comparison
	src     model.Source
	model   *model.Model
	tensors []spans.Tensor // in spool order, without holes
}

func (v *verification) sourceBytes(ctx context.Context, o *spans.Output) *sourceBytes {
	s := &sourceBytes{ctx: ctx, src: v.Source, model: v.Model}
	for t := range o.Tensors() {
		s.tensors = append(s.tensors, t)
	}
	return s
}

// ReadAt reads from as many tensors as p spans.
func (s *sourceBytes) ReadAt(p []byte, off int64) (int, error) {
	i := sort.Search(len(s.tensors), func(i int) bool { return s.end(i) > off })
	done := 0
	for ; done < len(p) && i < len(s.tensors); i++ {
		at := off + int64(done)
		n := min(int64(len(p)-done), s.end(i)-at)
		if err := s.read(p[done:done+int(n)], s.tensors[i], at-s.tensors[i].At); err != nil {
			return done, err
		}
		done += int(n)
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// end is the spool offset behind tensor i.
func (s *sourceBytes) end(i int) int64 {
	return s.tensors[i].At + spans.SpoolBytes(s.tensors[i].Tensor)
}

// read fills p with the bytes that tensor t has in a spool, from its byte skip on.
func (s *sourceBytes) read(p []byte, t spans.Tensor, skip int64) error {
	if !t.ExactF32 {
		return s.readFile(p, t.File, t.Offset+skip)
	}
	for block := range slices.Chunk(p, streams.BlockBytes/2) {
		f32 := make([]byte, 2*len(block))
		if err := s.readFile(f32, t.File, t.Offset+2*skip); err != nil {
			return err
		}
		if _, inexact := exactf32.Narrow(block, f32); inexact > 0 {
			return &exactf32.InexactError{
				File: s.model.Listing.Weights[t.File].Path, Tensor: t.Source,
				Values: inexact, Of: int64(len(block) / 2), Scope: exactf32.ScopeSample,
			}
		}
		skip += int64(len(block))
	}
	return nil
}

// readFile fills p with the bytes of a weight file from off on.
func (s *sourceBytes) readFile(p []byte, file int, off int64) error {
	if local := s.src.Local(file); local != nil {
		return streams.ReadFull(local, p, off)
	}
	b, err := s.src.ReadRange(s.ctx, file, off, int64(len(p)))
	copy(p, b)
	return err
}
