package back

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// ErrRemoteDF11 says that a DF11 model is in a repo, and can't be converted from there without its
// original.
var ErrRemoteDF11 = errors.New("without its original, only a DF11 model on this machine can get another layout")

// Original opens the original of a DF11 model as a source whose weights are decoded as they're
// read. If the pair has an original, everything but the weights comes from it, and the new source
// replaces it in the pair. Without one, headers and hashes come from the manifest, and all other
// files from the DF11 model, which must be on this machine. A weight file is checked against its
// hash when it's read to its end. prove does that for all files, and compares the files that a plan
// copies with the manifest. Which weights of a source these are is up to the model, not to opt.
// memory is that of [model.OpenLocal]. Closing the source closes the DF11 model.
func (p Pair) Original(ctx context.Context, opt plan.Options, memory int64,
	workers int) (src model.Source, m *model.Model, prove func(context.Context, *plan.Plan) error, err error) {
	if p.Model == nil && p.DF11.Local() == "" {
		return nil, nil, nil, ErrRemoteDF11
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
	prove = func(ctx context.Context, made *plan.Plan) error {
		if p.Model == nil {
			if err := p.compareCopied(ctx, made); err != nil {
				return err
			}
		}
		return r.Run(ctx, files, nil, func(model.File) error { return nil })
	}
	if p.Model != nil {
		p.Model.Narrow(p.DF11)
		return &decoded{p.Source, p.DF11, readers}, p.Model, prove, nil
	}
	if catalog.Layout(p.DF11.Layout()).Family() == opt.Layout.Family() {
		opt.WeightFile, opt.Component = sourcePlace(p.DF11)
	}
	x := indexOf(files)
	src, m, err = model.OpenRestored(ctx, p.DF11, files, readers, x.WeightFile.File, x.data, opt,
		memory)
	return src, m, prove, err
}

// compareCopied compares the files of the DF11 model that a plan copies, and the config that it
// goes by, with the manifest. It returns an InvalidError for the first file that isn't as listed. A
// file that isn't listed is copied only if the user asked for it.
func (p Pair) compareCopied(ctx context.Context, made *plan.Plan) error {
	listed := p.DF11.Manifest.Listed()
	copied := made.AllCopied()
	config := path.Join(p.DF11.Dir, names.Config)
	if _, ok := p.DF11.File(config); ok {
		copied = append(copied, plan.File{Path: config})
	}
	for _, f := range copied {
		o, isListed := listed[f.Path]
		f, _ := p.DF11.File(f.Path) // the source has no plan if it lacks one
		folder := made.Source().Folder
		switch {
		case !isListed && folder != nil && folder.Includes(f.Path):
		case !isListed:
			return model.Invalidf(f.Path, "the manifest doesn't list it")
		case f.Size != o.Size:
			return model.Invalidf(f.Path, "it has %d bytes, the manifest has %d", f.Size, o.Size)
		default:
			sum, err := model.Sum(ctx, p.DF11.OpenFile, f, o.SHA256)
			if err = cmp.Or(err, sameHash(sum, o)); err != nil {
				return err
			}
		}
	}
	return nil
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

func (d *decoded) ReadRange(_ context.Context, file int, p []byte, off int64) error {
	return streams.ReadFull(d.files[file], p, off)
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
