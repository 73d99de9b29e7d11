package back

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// FreeHashes compares the manifest with the sha256 of files as far as they are known without
// reading weights: a Hub publishes those of large files, and the other files are small. It also
// tells which files are missing or have another size. The manifest is a claim of whoever made the
// repo: equal sums show that it fits the files, no more. People edit a card after its publication,
// so what is for them is left out.
func (c *Checker) FreeHashes(ctx context.Context) error { return c.hashes(ctx, false) }

// OtherHashes compares the sha256 of the weight files that FreeHashes has left, which it reads.
func (c *Checker) OtherHashes(ctx context.Context) error { return c.hashes(ctx, true) }

// hashes compares the files that only reading weights tells the sha256 of, or all others, one by
// each worker at a time.
func (c *Checker) hashes(ctx context.Context, unread bool) error {
	if c.DF11.Manifest == nil {
		return nil
	}
	var files []plan.File
	var want []metadata.OutputFile
	for _, o := range c.DF11.Manifest.Outputs {
		f, ok := c.DF11.File(o.Path)
		switch known := names.IsSHA256(f.ETag); {
		case c.isForPeople(o.Path):
			continue
		case !ok:
			return model.Invalidf(o.Path, "listed in the manifest but not there")
		case f.Size != o.Size:
			return model.Invalidf(o.Path, "it has %d bytes, the manifest has %d%s", f.Size, o.Size,
				c.modules(o.Path))
		case unread == (!known && plan.IsSafetensors(o.Path)):
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
		if sums[i] != o.SHA256 {
			return model.Invalidf(o.Path, "sha256 is %s, the manifest has %s%s", sums[i], o.SHA256,
				c.modules(o.Path))
		}
		c.Hashed++
	}
	return nil
}

// modules says which modules a file holds, by the manifest.
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
