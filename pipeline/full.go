package pipeline

import (
	"context"
	"os"
	"slices"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/forward/compare"
	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// full goes the way of a conversion without encoding: it streams the original, and compares every
// weight and every copied tensor with it. Outputs that are found equal are not compared again.
// gpuUnits counts their units that a GPU has compared as well.
func (v *verification) full(ctx context.Context) (gpuUnits int, err error) {
	v.Progress.Verified.Store(0)
	v.Progress.Outputs.Store(0)
	v.Progress.SourceBytes.Store(spans.ProvedBytes(v.outputs))
	v.Progress.OutputFiles.Store(int64(len(v.outputs)))
	v.Progress.Expect(progress.Read, progress.Verify)
	spooled := func(o *spans.Output) bool { return o.Spooled(v.Model.Local) }
	var dir *os.Root
	if v.GPU != nil || slices.ContainsFunc(v.outputs, spooled) {
		if err := os.MkdirAll(v.WorkDir, 0o700); err != nil {
			return 0, err
		}
		if dir, err = os.OpenRoot(v.WorkDir); err != nil {
			return 0, err
		}
		defer dir.Close()
	}
	fetcher := &fetch.Fetcher{
		Source: v.Source, Model: v.Model, Tasks: fetch.NewTasks(v.outputs),
		Ledger:    ledger.New("", false),
		Room:      &spool.Room{Dir: dir, Disk: spool.NewBudget(0), Memory: spool.NewBudget(0)},
		Uncounted: true, Progress: v.Progress,
	}
	defer func() { _ = fetcher.Leave() }()
	work := &forward.Work{
		Fetcher: fetcher, Comparer: &compare.Comparer{Workers: v.Workers, GPU: v.GPU,
			Progress: v.Progress}, Stored: v.DF11,
	}
	if v.DF11.Remote() {
		work.Comparer.NearDir = dir
	}
	err = work.Run(ctx)
	v.outputs = slices.DeleteFunc(v.outputs,
		func(o *spans.Output) bool { return slices.Contains(work.Equal, o) })
	return work.GPUUnits, err
}
