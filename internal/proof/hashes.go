package proof

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// hashes checks the sha256 of every file that the manifest lists.
func (v *verification) hashes(ctx context.Context) error {
	if v.DF11.Manifest == nil {
		return nil
	}
	outputs := v.DF11.Manifest.Outputs
	var files []model.OpenFile
	for _, o := range outputs {
		f, ok := v.DF11.File(o.Path)
		if !ok {
			return model.Invalidf(o.Path, "listed in the manifest but not there")
		}
		files = append(files, f)
	}
	sums, err := sumAll(ctx, v.Workers, files)
	if err != nil {
		return err
	}
	for i, o := range outputs {
		if sums[i] != o.SHA256 {
			return model.Invalidf(o.Path, "sha256 is %s, the manifest has %s", sums[i], o.SHA256)
		}
	}
	return nil
}

// sumAll gives the sha256 of each file, in hex: the published one where there is one. The other files are hashed, one by each
// worker at a time.
func sumAll(ctx context.Context, workers int, files []model.OpenFile) ([]string, error) {
	sums := make([]string, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i, f := range files {
		if sums[i] = f.SHA256; sums[i] != "" {
			continue
		}
		g.Go(func() (err error) {
			sums[i], err = streams.SHA256(ctx, io.NewSectionReader(f, 0, f.Size))
			return err
		})
	}
	return sums, g.Wait()
}
