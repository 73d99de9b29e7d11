package pipeline

import (
	"context"
	"io"
	"slices"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// rebuildUnchecked proves what this run has not made of bytes that it has hashed, since nobody
// vouches for a journal: it checks the headers of the outputs of earlier runs, rebuilds every
// source file that no single pass of this run has hashed, from the outputs as they are stored, and
// compares its sha256 with the published one.
func (c *conversion) rebuildUnchecked(ctx context.Context) error {
	files := slices.DeleteFunc(c.Model.Files(), func(f model.File) bool {
		_, known := c.ledger.File(f.Path)
		return known
	})
	if len(files) == 0 && !slices.ContainsFunc(c.ledger.Outputs(), ofEarlierRun) {
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
	if err := c.checkEarlier(d); err != nil {
		return err
	}
	r := back.NewRebuilder(d, c.outputs, c.Memory.Workers, new(progress.Counters))
	r.Outside = c.outside
	return r.Run(ctx, files, nil, func(f model.File) error {
		c.Log.Info("source file rebuilt", "file", f.Path)
		c.ledger.AddFile(ledger.File{Path: f.Path, Integrity: metadata.Proof, SHA256: f.SHA256})
		return nil
	})
}

// outside reads a tensor that the model leaves out from the source: in a rebuilt file it stands
// between tensors of the outputs.
func (c *conversion) outside(ctx context.Context, f model.File, t safetensors.Tensor,
	w io.Writer) error {
	if !slices.ContainsFunc(c.Plan.Dropped,
		func(d plan.Tensor) bool { return d.Source == t.Name }) {
		return model.Invalidf("", "the plan has no place for it")
	}
	in, err := c.Source.Stream(ctx, f.Index, f.Header.DataStart()+t.Begin,
		f.Header.DataStart()+t.End)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = streams.Copy(ctx, w, in)
	return err
}

// checkEarlier checks that the outputs of earlier runs hold what the plan wants, and nothing else
// that a loader would read.
func (c *conversion) checkEarlier(d *model.DF11) error {
	stored := map[string]*safetensors.Header{}
	for _, w := range d.WeightFiles() {
		stored[w.Path] = w.Header
	}
	for _, o := range c.outputs {
		done, _ := c.ledger.Output(o.Path)
		if done.Made {
			continue
		}
		if err := forward.CheckStored(o, stored[o.Path]); err != nil {
			return err
		}
		for i, u := range o.Units {
			if d.Coded(u.Path) != (done.Units[i].Status == metadata.DF11) {
				return model.Invalidf(o.Path, "module %s is not stored as %s", u.Path,
					done.Units[i].Status)
			}
		}
	}
	return nil
}

// openOutputs opens the outputs of earlier runs, and those that source files went into, in the
// folder or, by ranges, in the target repo.
func (c *conversion) openOutputs(ctx context.Context, from []model.File) (*model.DF11, error) {
	used := func(file int) bool {
		return slices.ContainsFunc(from, func(f model.File) bool { return f.Index == file })
	}
	var refs []hub.FileRef
	for _, o := range c.outputs {
		done, _ := c.ledger.Output(o.Path)
		if done.Made && !slices.ContainsFunc(o.Files(), used) {
			continue
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
	// a file of the folder is the output only if it has the output's sha256
	here := func(name string) string {
		if o, _ := c.ledger.Output(name); o.Here {
			return c.folder.Path(name)
		}
		return ""
	}
	return model.OpenOutputs(ctx, refs, here, remote, c.Memory.Pieces)
}
