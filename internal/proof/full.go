package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
	"github.com/df11-convert/df11-convert/internal/streams"
	"github.com/df11-convert/df11-convert/verify"
)

// full streams the original through the stage that fetches for a conversion, and compares every weight and every copied
// tensor with it.
func (v *verification) full(ctx context.Context) error {
	v.Progress.SourceBytes.Store(spans.ProvedBytes(v.outputs))
	v.Progress.OutputFiles.Store(int64(len(v.outputs)))
	v.Progress.Expect(progress.Read, progress.Verify)
	spooled := func(o *spans.Output) bool { return !fetch.InPlace(v.Source, o) }
	if v.GPU != nil || slices.ContainsFunc(v.outputs, spooled) {
		if err := os.MkdirAll(v.WorkDir, 0o777); err != nil {
			return err
		}
	}
	tasks := fetch.NewTasks(v.outputs)
	defer func() {
		for _, t := range tasks {
			if t.Spool != nil {
				_ = t.Spool.Release() // after an error; else it is released by now
			}
		}
	}()
	fetcher := &fetch.Fetcher{
		Source: v.Source, Tasks: tasks, Files: fetch.Files(v.Model, v.outputs), Ledger: ledger.New("", "", false),
		Room:     &spool.Room{Dir: v.WorkDir, Disk: spool.NewBudget("disk", 0), Memory: spool.NewBudget("memory", 0)},
		Parallel: 1, Progress: v.Progress,
	}
	complete := make(chan *fetch.Task)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(complete)
		return fetcher.Run(ctx, complete)
	})
	g.Go(func() error {
		for t := range complete {
			if err := errors.Join(v.compareOutput(ctx, t.Output, t.Spool), t.Spool.Release()); err != nil {
				return err
			}
			v.Progress.Outputs.Add(1)
		}
		return nil
	})
	return g.Wait()
}

// compareOutput compares the stored bytes of one output with the original's in its spool. One goroutine calls it.
func (v *verification) compareOutput(ctx context.Context, o *spans.Output, source io.ReaderAt) error {
	for _, u := range o.Units {
		if err := v.compareUnit(ctx, u, source); err != nil {
			return err
		}
	}
	for _, t := range o.Copied {
		if err := v.compareTensor(ctx, t, source); err != nil {
			return err
		}
	}
	return Aliases(ctx, o, source)
}

func (v *verification) compareUnit(ctx context.Context, u *spans.Unit, source io.ReaderAt) (err error) {
	if !v.DF11.Coded(u.Path) {
		for t := range u.Tensors() {
			if err := v.compareTensor(ctx, t, source); err != nil {
				return err
			}
		}
		return nil
	}
	arrays := v.DF11.Arrays(u.Path)
	if v.GPU != nil && v.DF11.Commit != "" {
		near, failed := spool.NewTemp(v.WorkDir)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, near.Release()) }()
		if arrays, err = v.bringNear(ctx, u.Path, near); err != nil {
			return fmt.Errorf("fetch module %s: %w", u.Path, err)
		}
	}
	c := Checker{Workers: v.Workers, GPU: v.GPU, Progress: v.Progress}
	gpu, err := c.Unit(ctx, u, arrays, io.NewSectionReader(source, u.At, 2*u.NElems()))
	if gpu {
		v.gpuUnits++
	}
	return err
}

// bringNear copies the arrays of a remote unit to a file, so that two decoders fetch them only once.
func (v *verification) bringNear(ctx context.Context, path string, near *spool.Temp) (verify.Arrays, error) {
	sections := map[string]*io.SectionReader{}
	at := int64(0)
	for _, name := range plan.StoredNames {
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

// TensorError names the first element of a tensor which is stored unchanged that differs from the source.
type TensorError struct {
	Tensor    string
	Elem      int64
	Got, Want string // the bits of the element, in hex
}

func (e *TensorError) Error() string {
	return fmt.Sprintf("tensor %s, element %d: stored %s, source has %s", e.Tensor, e.Elem, e.Got, e.Want)
}

// compareTensor compares a tensor that is stored unchanged.
func (v *verification) compareTensor(ctx context.Context, t spans.Tensor, source io.ReaderAt) error {
	n := t.SpoolBytes()
	s, ok := v.DF11.Section(t.Name)
	if !ok || s.Size() != n {
		return model.Invalidf("", "tensor %s is missing, or has another size", t.Name)
	}
	original := io.NewSectionReader(source, t.At, n)
	at, err := streams.FirstDifference(ctx, s, original, n)
	if err == nil && at >= 0 {
		return difference(t, s, original, at)
	}
	if err != nil {
		return fmt.Errorf("compare tensor %s: %w", t.Name, err)
	}
	v.Progress.Verified.Add(n)
	return nil
}

// difference reads the element of a tensor to which the byte at belongs.
func difference(t spans.Tensor, stored, source *io.SectionReader, at int64) error {
	width := max(1, stored.Size()/max(1, t.NElems())) // of elements smaller than a byte, bytes are counted
	e := &TensorError{Tensor: t.Name, Elem: at / width}
	got, want := make([]byte, width), make([]byte, width)
	if err := errors.Join(streams.ReadFull(stored, got, e.Elem*width), streams.ReadFull(source, want, e.Elem*width)); err != nil {
		return fmt.Errorf("compare tensor %s: %w", t.Name, err)
	}
	slices.Reverse(got) // little-endian
	slices.Reverse(want)
	e.Got, e.Want = fmt.Sprintf("%#x", got), fmt.Sprintf("%#x", want)
	return e
}
