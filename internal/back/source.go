package back

import (
	"context"
	"errors"
	"io"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// ErrAway says that a model must be on this machine to be converted without its original.
var ErrAway = errors.New("a DF11 model must be on this machine to become another layout without its original")

// Original opens the original of a DF11 model as a source whose weights are decoded as they're read.
// With an original in the pair, everything else comes from that, and the source takes its place.
// Without one, headers and hashes come from the manifest, and all other files from the DF11 model,
// which must be on this machine. Whoever reads a weight file to its end compares its hash; prove
// does nothing but that, for all files. Closing the source closes the DF11 model.
func (p Pair) Original(ctx context.Context, opt plan.Options, workers int) (src model.Source,
	m *model.Model, prove func(context.Context) error, err error) {
	if p.Model == nil && p.DF11.Local() == "" {
		return nil, nil, nil, ErrAway
	}
	files, r, err := p.Rebuilder(workers, new(progress.Counters))
	if err != nil {
		return nil, nil, nil, err
	}
	readers := make([]*io.SectionReader, len(files))
	for i, f := range files {
		if readers[i], err = r.ReaderAt(f); err != nil {
			return nil, nil, nil, err
		}
	}
	prove = func(ctx context.Context) error {
		return r.Run(ctx, files, nil, func(model.File) error { return nil })
	}
	if p.Model != nil {
		p.Model.Narrow(p.DF11)
		return &decoded{p.Source, p.DF11, readers}, p.Model, prove, nil
	}
	x := indexOf(files)
	src, m, err = model.OpenRestored(ctx, p.DF11, files, readers, x.WeightFile.File, x.data, opt)
	return src, m, prove, err
}

// decoded is an original whose weights come from a DF11 model.
type decoded struct {
	model.Source
	df11  *model.DF11
	files []*io.SectionReader
}

func (d *decoded) Stream(_ context.Context, file int, off, end int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(d.files[file], off, end-off)), nil
}

func (d *decoded) ReadRange(_ context.Context, file int, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	return b, streams.ReadFull(d.files[file], b, off)
}

func (d *decoded) Local(file int) io.ReaderAt {
	if d.df11.Local() == "" {
		return nil
	}
	return d.files[file]
}

// Recheck fetches the DF11 model's weights again.
func (d *decoded) Recheck(ctx context.Context, _ string) bool { return d.df11.Refetch(ctx) }

func (d *decoded) Unchanged(int) error { return d.df11.Unchanged() }

func (d *decoded) Close() error { return errors.Join(d.Source.Close(), d.df11.Close()) }
