package back

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// FreeHashes compares the manifest with the sha256 of files as far as they are known without reading weights: a Hub publishes
// those of large files, and the other files are small. It also tells which files are missing or have another size. The manifest is
// a claim of whoever made the repo: equal sums show that it fits the files, no more. People edit a card after its publication, so
// what is for them is left out.
func (c *Checker) FreeHashes(ctx context.Context) error {
	if c.DF11.Manifest == nil {
		return nil
	}
	for _, o := range c.DF11.Manifest.Outputs {
		if c.isForPeople(o.Path) {
			continue
		}
		c.Listed++
		if err := c.freeHash(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// freeHash compares one file with the manifest, or leaves it to OtherHashes.
func (c *Checker) freeHash(ctx context.Context, o metadata.OutputFile) error {
	f, ok := c.DF11.File(o.Path)
	if len(f.ETag) != hex.EncodedLen(sha256.Size) {
		f.ETag = ""
	}
	switch unread := f.ETag == "" && plan.IsSafetensors(o.Path); {
	case !ok:
		return model.Invalidf(o.Path, "listed in the manifest but not there")
	case unread && f.Size != o.Size:
		return model.Invalidf(o.Path, "it has %d bytes, the manifest has %d", f.Size, o.Size)
	case unread:
		c.unhashed = append(c.unhashed, o)
		return nil
	}
	sum, err := model.Sum(ctx, c.DF11.OpenFile, f, o.SHA256)
	if err != nil {
		return err
	}
	return c.compareSum(o, sum)
}

// compareSum compares a sum with the manifest's and counts it.
func (c *Checker) compareSum(o metadata.OutputFile, sum string) error {
	if sum != o.SHA256 {
		return model.Invalidf(o.Path, "sha256 is %s, the manifest has %s", sum, o.SHA256)
	}
	c.Hashed++
	return nil
}

// OtherHashes compares the sha256 of the weight files that FreeHashes has left, which it reads, one by each worker at a time.
func (c *Checker) OtherHashes(ctx context.Context) error {
	sums := make([]string, len(c.unhashed))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.Workers)
	for i, o := range c.unhashed {
		g.Go(func() (err error) {
			sums[i], err = model.Sum(ctx, c.DF11.OpenFile, plan.File{Path: o.Path}, "")
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, o := range c.unhashed {
		if err := c.compareSum(o, sums[i]); err != nil {
			return err
		}
	}
	return nil
}
