package proof

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

// full compares every weight and every copied tensor with the original, output by output.
//
// The lead replaces the fetching by that of package fetch: source files stream in order into the spools of all outputs, and
// each is checked by its sha256.
func (v *verification) full(ctx context.Context) error {
	v.Progress.SourceBytes.Store(spans.ProvedBytes(v.outputs))
	v.Progress.OutputFiles.Store(int64(len(v.outputs)))
	for _, o := range v.outputs {
		if err := v.fetchAndCompare(ctx, o); err != nil {
			return err
		}
		v.Progress.Outputs.Add(1)
	}
	return nil
}

func (v *verification) fetchAndCompare(ctx context.Context, o *spans.Output) error {
	source := v.sourceBytes(ctx, o)
	if v.Model.Local && !o.Narrows() {
		return v.compareOutput(ctx, o, source)
	}
	spool, err := newScratch(v.WorkDir)
	if err != nil {
		return err
	}
	_, err = streams.Copy(ctx, io.NewOffsetWriter(spool, 0), io.NewSectionReader(source, 0, o.Size))
	if err == nil {
		err = v.compareOutput(ctx, o, spool)
	}
	return errors.Join(err, spool.Close())
}

// compareOutput compares the stored bytes of one output with the original's in its spool. One goroutine calls it.
func (v *verification) compareOutput(ctx context.Context, o *spans.Output, spool io.ReaderAt) error {
	for _, u := range o.Units {
		if err := v.compareUnit(ctx, u, spool); err != nil {
			return err
		}
	}
	for _, t := range o.Copied {
		if err := v.compareTensor(ctx, t, spool); err != nil {
			return err
		}
	}
	return Aliases(ctx, o, spool)
}

func (v *verification) compareUnit(ctx context.Context, u *spans.Unit, spool io.ReaderAt) error {
	if !v.DF11.Coded(u.Path) {
		for t := range u.Tensors() {
			if err := v.compareTensor(ctx, t, spool); err != nil {
				return err
			}
		}
		return nil
	}
	arrays := v.DF11.Arrays(u.Path)
	if v.GPU != nil && v.DF11.Commit != "" {
		near, err := newScratch(v.WorkDir)
		if err != nil {
			return err
		}
		defer near.Close()
		if arrays, err = v.bringNear(ctx, u.Path, near); err != nil {
			return fmt.Errorf("fetch unit %s: %w", u.Path, err)
		}
	}
	c := Checker{Workers: v.Workers, GPU: v.GPU, Progress: v.Progress}
	gpu, err := c.Unit(ctx, u, arrays, io.NewSectionReader(spool, u.At, 2*u.NElems()))
	if gpu {
		v.gpuUnits++
	}
	return err
}

// bringNear copies the arrays of a remote unit to a file, so that two decoders, one after the other, fetch them only once.
func (v *verification) bringNear(ctx context.Context, path string, near *scratch) (verify.Arrays, error) {
	sections := map[string]*io.SectionReader{}
	at := int64(0)
	for _, name := range model.SixTensors {
		s, ok := v.DF11.Section(path + "." + name)
		if !ok {
			return verify.Arrays{}, model.Invalidf("", "tensor %s.%s is missing", path, name)
		}
		if err := copySection(ctx, io.NewOffsetWriter(near, at), s); err != nil {
			return verify.Arrays{}, err
		}
		sections[name] = io.NewSectionReader(near, at, s.Size())
		at += s.Size()
	}
	return model.ArraysAt(func(name string) *io.SectionReader { return sections[name] }), nil
}

// compareTensor compares a tensor that is stored unchanged.
func (v *verification) compareTensor(ctx context.Context, t spans.Tensor, spool io.ReaderAt) error {
	s, ok := v.DF11.Section(t.Name)
	if !ok {
		return model.Invalidf("", "tensor %s is missing", t.Name)
	}
	n := spans.SpoolBytes(t.Tensor)
	at, err := streams.FirstDifference(ctx, s, io.NewSectionReader(spool, t.At, n), n)
	if err != nil {
		return fmt.Errorf("compare tensor %s: %w", t.Name, err)
	}
	if at >= 0 {
		stored, _ := v.DF11.Tensor(t.Name)
		return model.Invalidf(stored.File, "tensor %s differs from the original at byte %d", t.Name, at)
	}
	v.Progress.Verified.Add(n)
	return nil
}
