package proof

import (
	"context"
	"encoding/hex"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/sha256pair"
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

// sumAll gives the sha256 of each file, in hex: the published one where there is one. The other files are hashed, two at a
// time by each worker.
func sumAll(ctx context.Context, workers int, files []model.OpenFile) ([]string, error) {
	sums := make([]string, len(files))
	var unknown []int
	for i, f := range files {
		if sums[i] = f.SHA256; sums[i] == "" {
			unknown = append(unknown, i)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for pair := range slices.Chunk(unknown, 2) {
		g.Go(func() error {
			var two [2]sha256pair.Stream
			for k, i := range pair {
				two[k] = sha256pair.Stream{R: files[i], Size: files[i].Size}
			}
			a, b, err := sha256pair.SumReaders(ctx, two[0], two[1])
			for k, i := range pair {
				sums[i] = hex.EncodeToString([][]byte{a, b}[k])
			}
			return err
		})
	}
	return sums, g.Wait()
}
