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
func (s *state) rebuildUnchecked(ctx context.Context) error {
	files := slices.DeleteFunc(s.source.Files(), func(f model.File) bool {
		_, known := s.ledger.File(f.Path)
		return known
	})
	if len(files) == 0 && !slices.ContainsFunc(s.ledger.Outputs(), ofEarlierRun) {
		return nil
	}
	s.freeBuffers()
	if err := addSums(ctx, s.Source, files, s.Memory.Workers); err != nil {
		return err
	}
	d, err := s.openOutputs(ctx, files)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := s.checkEarlier(d, s.ledger); err != nil {
		return err
	}
	r := back.NewRebuilder(d, s.outputs, s.Memory.Workers, new(progress.Counters))
	r.Outside = s.outside
	return r.Run(ctx, files, nil, func(f model.File) error {
		s.Log.Info("source file rebuilt", "file", f.Path)
		s.ledger.AddFile(ledger.File{Path: f.Path, Integrity: metadata.Proof, SHA256: f.SHA256})
		return nil
	})
}

// outside reads a tensor that the model leaves out from the source: in a rebuilt file it stands
// between tensors of the outputs.
func (j *job) outside(ctx context.Context, f model.File, t safetensors.Tensor,
	w io.Writer) error {
	if !slices.ContainsFunc(j.Plan.Dropped,
		func(d plan.Tensor) bool { return d.Source == t.Name }) {
		return model.Invalidf("", "the plan has no place for it")
	}
	in, err := j.Source.Stream(ctx, f.Index, f.Header.DataStart()+t.Begin,
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
func (j *job) checkEarlier(d *model.DF11, made *ledger.Ledger) error {
	stored := map[string]*safetensors.Header{}
	for _, w := range d.WeightFiles() {
		stored[w.Path] = w.Header
	}
	for _, o := range j.outputs {
		done, _ := made.Output(o.Path)
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
func (s *state) openOutputs(ctx context.Context, from []model.File) (*model.DF11, error) {
	used := func(file int) bool {
		return slices.ContainsFunc(from, func(f model.File) bool { return f.Index == file })
	}
	var refs []hub.FileRef
	for _, o := range s.outputs {
		done, _ := s.ledger.Output(o.Path)
		if done.Made && !slices.ContainsFunc(o.Files(), used) {
			continue
		}
		ref := hub.FileRef{Path: done.Path, Size: done.Size, SHA256: done.SHA256}
		if s.repo != nil {
			ref = s.repo.Ref(done)
		}
		refs = append(refs, ref)
	}
	var remote *hub.Client
	if s.repo != nil {
		remote = s.repo.Hub
	}
	// a file of the folder is the output only if it has the output's sha256
	here := func(name string) string {
		if o, _ := s.ledger.Output(name); o.Here {
			return s.folder.Path(name)
		}
		return ""
	}
	return model.OpenOutputs(ctx, refs, here, remote, s.Memory.Pieces)
}
