package back

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// FreeHashes compares the weight files with the manifest: their sizes, and every SHA-256 that a Hub
// publishes. Equal hashes show only that the manifest, a claim by the repo's maker, fits the files;
// other hashes are a fault. It also finds other files that the manifest lists and the model lacks.
func (c *Checker) FreeHashes(context.Context) error {
	if c.DF11.Manifest == nil {
		return nil
	}
	for _, o := range c.DF11.Manifest.Outputs {
		f, ok := c.DF11.File(o.Path)
		switch {
		case !reader.IsSafetensors(o.Path):
			if !ok && !slices.Contains(notCompared, o.Path) {
				c.lost = append(c.lost, o.Path)
			}
			continue
		case !ok:
			return model.Invalidf(o.Path, "the manifest lists it, but it's missing")
		case f.Size != o.Size:
			return model.Invalidf(o.Path, "it has %d bytes, the manifest has %d", f.Size, o.Size)
		}
		if names.IsSHA256(f.ETag) {
			if err := sameHash(f.ETag, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// OtherHashes reads the weight files whose SHA-256 FreeHashes can't compare because no Hub
// publishes it, and compares that.
func (c *Checker) OtherHashes(ctx context.Context) error {
	if c.DF11.Manifest == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.workers)
	for _, o := range c.DF11.Manifest.Outputs {
		f, ok := c.DF11.File(o.Path)
		if !ok || !reader.IsSafetensors(o.Path) || f.Size != o.Size || names.IsSHA256(f.ETag) {
			continue
		}
		g.Go(func() error {
			sum, err := model.Sum(ctx, c.DF11.OpenFile, plan.File{Path: o.Path}, "")
			return cmp.Or(err, sameHash(sum, o))
		})
	}
	return g.Wait()
}

// sameHash returns an InvalidError if the SHA-256 of a file isn't the manifest's.
func sameHash(sum string, o metadata.OutputFile) error {
	if sum != o.SHA256 {
		return model.Invalidf(o.Path, "%w", &HashError{sum, o.SHA256})
	}
	return nil
}

// A HashError says that a file isn't the one that the manifest lists.
type HashError struct{ Got, Manifest string }

func (e *HashError) Error() string {
	return fmt.Sprintf("sha256 is %s, the manifest has %s", e.Got, e.Manifest)
}
