package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/proof"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// rebuildUnchecked rebuilds every source file that no single pass has hashed, from the outputs as they are stored, and compares its
// sha256 with the published one.
func (c *conversion) rebuildUnchecked(ctx context.Context) error {
	var unchecked []*fetch.File
	for _, f := range fetch.Files(c.Model, c.outputs) {
		if _, known := c.ledger.File(f.Path); !known {
			unchecked = append(unchecked, f)
		}
	}
	if len(unchecked) == 0 {
		return nil
	}
	c.freeBuffers()
	d, err := c.openOutputs(ctx, unchecked)
	if err != nil {
		return err
	}
	defer d.Close()
	rebuilder := proof.NewRebuilder(d, c.outputs, c.Memory.Workers)
	for _, f := range unchecked {
		if err := c.rebuild(ctx, rebuilder, f); err != nil {
			return err
		}
		c.Log.Info("source file verified", "file", f.Path)
	}
	return nil
}

func (c *conversion) rebuild(ctx context.Context, r *proof.Rebuilder, f *fetch.File) error {
	want := f.Want
	if want == "" { // nobody publishes the sum of a local file: it is read for it
		var err error
		if want, err = fetch.Sum(ctx, c.Source, f.Index, f.Path, f.Size); err != nil {
			return err
		}
	}
	err := r.Prove(ctx, f.Path, c.Model.Listing.Weights[f.Index].Header, want)
	if e, wrong := errors.AsType[*proof.RebuildError](err); wrong {
		return &ProofError{f.Path, e.Err}
	}
	if err != nil {
		return err
	}
	return c.ledger.AddFile(ledger.File{Path: f.Path, Integrity: metadata.Proof, SHA256: want})
}

// openOutputs opens the outputs that source files went into, in the folder or, by ranges, in the target repo.
func (c *conversion) openOutputs(ctx context.Context, from []*fetch.File) (*model.DF11, error) {
	var segments []spans.Segment
	for _, f := range from {
		segments = append(segments, f.Segments...)
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
