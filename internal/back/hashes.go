package back

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// FreeHashes compares the manifest with every SHA-256 that it can know without reading weights: a
// Hub publishes the hashes of large files, and other files are small. It also finds missing files
// and other sizes. Equal hashes show only that the manifest, a claim by the repo's maker, fits the
// files. Weights that don't fit are a fault. Another changed file is only a warning, because
// CompareFiles, which comes first, compares it with the original. Files for people are left out,
// since people edit a card after publishing it.
func (c *Checker) FreeHashes(ctx context.Context) error { return c.hashes(ctx, false) }

// OtherHashes reads the weight files that FreeHashes left out, and compares their SHA-256.
func (c *Checker) OtherHashes(ctx context.Context) error { return c.hashes(ctx, true) }

// hashes compares files with the manifest: with unread, the weight files without a published
// SHA-256; otherwise all others.
func (c *Checker) hashes(ctx context.Context, unread bool) error {
	if c.DF11.Manifest == nil {
		return nil
	}
	var files []plan.File
	var want []metadata.OutputFile
	for _, o := range c.DF11.Manifest.Outputs {
		f, ok := c.DF11.File(o.Path)
		isWeights := reader.IsSafetensors(o.Path)
		switch known := names.IsSHA256(f.ETag); {
		case c.isForPeople(o.Path) || unread && !isWeights:
			continue
		case !ok && !isWeights:
			c.lost(o.Path)
		case !ok:
			return model.Invalidf(o.Path, "the manifest lists it, but it's missing")
		case f.Size != o.Size && isWeights:
			return model.Invalidf(o.Path, "it has %d bytes, the manifest has %d%s", f.Size, o.Size,
				c.modules(o.Path))
		case unread == (!known && isWeights):
			files, want = append(files, f), append(want, o)
		}
		if !unread {
			c.Listed++
		}
	}
	sums := make([]string, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.Workers)
	for i, f := range files {
		g.Go(func() (err error) {
			sums[i], err = model.Sum(ctx, c.DF11.OpenFile, f, want[i].SHA256)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, o := range want {
		switch {
		case sums[i] == o.SHA256:
			c.Hashed++
		case !reader.IsSafetensors(o.Path):
			c.Warn("%s was changed after the conversion: sha256 is %s, the manifest has %s", o.Path,
				sums[i], o.SHA256)
		default:
			return model.Invalidf(o.Path, "sha256 is %s, the manifest has %s%s", sums[i], o.SHA256,
				c.modules(o.Path))
		}
	}
	return nil
}

// lost adds to c.Beside, if it isn't there, a file that the manifest lists and the model lacks.
func (c *Checker) lost(name string) {
	if !slices.ContainsFunc(c.Beside, func(o OtherFile) bool { return o.Path == name }) {
		c.Beside = append(c.Beside, OtherFile{name, Missing})
	}
}

// modules says which modules the manifest lists for a file.
func (c *Checker) modules(file string) string {
	var held []string
	for _, u := range c.DF11.Manifest.Units {
		if u.File == file {
			held = append(held, u.Path)
		}
	}
	if held == nil {
		return ""
	}
	return "; it holds " + human.List(held)
}
