package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// rebuildUnchecked rebuilds every source file that no single pass has hashed, from the outputs as they are stored, and compares its
// sha256 with the published one.
func (c *conversion) rebuildUnchecked(ctx context.Context) error {
	files := slices.DeleteFunc(back.Files(c.Model), func(f back.File) bool {
		_, known := c.ledger.File(f.Path)
		return known
	})
	if len(files) == 0 {
		return nil
	}
	c.freeBuffers()
	if err := addSums(ctx, c.Source, files, c.Memory.Workers); err != nil {
		return err
	}
	d, err := c.openOutputs(ctx, files)
	if err != nil {
		return err
	}
	defer d.Close()
	r := back.NewRebuilder(d, c.outputs, c.Memory.Workers, new(progress.Counters))
	return r.Run(ctx, files, nil, func(f back.File) error {
		c.Log.Info("source file rebuilt", "file", f.Path)
		return c.ledger.AddFile(ledger.File{Path: f.Path, Integrity: metadata.Proof, SHA256: f.SHA256})
	})
}

// openOutputs opens the outputs that source files went into, in the folder or, by ranges, in the target repo.
func (c *conversion) openOutputs(ctx context.Context, from []back.File) (*model.DF11, error) {
	all := spans.Segments(c.outputs, len(c.Model.SHA256))
	var segments []spans.Segment
	for _, f := range from {
		segments = append(segments, all[f.Index]...)
	}
	var refs []hub.FileRef
	for _, o := range spans.UsedBy(segments) {
		done, ok := c.ledger.Output(o.Path)
		if !ok {
			return nil, fmt.Errorf("output %s is not finished", o.Path)
		}
		ref := hub.FileRef{Path: done.Path, Size: done.Size, SHA256: done.SHA256}
		if c.repo != nil {
			ref = c.repo.Ref(done)
		}
		refs = append(refs, ref)
	}
	var remote *hub.Client
	if c.repo != nil {
		remote = c.repo.Hub
	}
	return model.OpenOutputs(ctx, refs, c.folder.Path, remote, c.Memory.Pieces)
}
