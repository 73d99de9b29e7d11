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
	if v.noted[u.Path] {
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
	weights := io.NewSectionReader(source, u.At, 2*u.NElems())
	gpu, err := c.Unit(ctx, u, arrays, weights)
	if gpu {
		v.gpuUnits++
	}
	return v.unitFault(err, u.Path, func() (differing, of int64, err error) {
		opened, err := verify.Open(arrays, u.NElems(), u.Sizes())
		if err != nil {
			return 0, 0, err
		}
		return opened.CountDifferences(ctx, weights, v.Workers)
	})
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

// compareTensor compares a tensor that is stored unchanged.
func (v *verification) compareTensor(ctx context.Context, t spans.Tensor, source io.ReaderAt) error {
	n := t.SpoolBytes()
	s, ok := v.DF11.Section(t.Name)
	if !ok || s.Size() != n {
		err := model.Invalidf("", "tensor %s is missing, or has another size", t.Name)
		return v.fault(KindTensor, t.Name, err)
	}
	original := io.NewSectionReader(source, t.At, n)
	at, err := streams.FirstDifference(ctx, s, original, n)
	if err != nil {
		return fmt.Errorf("compare tensor %s: %w", t.Name, err)
	}
	if at < 0 {
		v.Progress.Verified.Add(n)
		return nil
	}
	stored, _ := v.DF11.Tensor(t.Name)
	values := max(1, t.NElems())
	d := Difference{Kind: KindTensor, Name: t.Name, Weights: values} // of less than a byte: bytes are counted
	if d.Differing, err = differingValues(ctx, s, original, n, int(max(1, n/values))); err != nil {
		return fmt.Errorf("compare tensor %s: %w", t.Name, err)
	}
	return v.note(d, model.Invalidf(stored.File, "tensor %s differs from the original at byte %d", t.Name, at))
}
