package convert

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
)

// rebuildUnchecked proves the work of earlier runs, because a journal proves nothing. It checks the
// headers of their outputs, and rebuilds the source files of these, those that this run didn't hash
// in one pass, and those that failed before. It compares the SHA-256 of each with the published
// one. Then the weights of the outputs are known, and how a conversion stores them is compared,
// too. It leaves out what the run takes over.
func rebuildUnchecked(ctx context.Context, j *job, t *targets, failed map[string]bool) error {
	earlier := slices.DeleteFunc(slices.Clone(j.outputs), func(o *spans.Output) bool {
		done, _ := t.ledger.Output(o.Path)
		return !done.Unproved()
	})
	unread := j.unread(t.ledger)
	files := slices.DeleteFunc(j.Model.Original().Files(), func(f model.File) bool {
		_, hashed := t.ledger.File(f.Path)
		return hashed && !failed[f.Path] && !slices.ContainsFunc(earlier, j.isFrom(f.Index)) ||
			unread[f.Path]
	})
	if len(files) == 0 && len(earlier) == 0 {
		return nil
	}
	freeBuffers(j, t)
	if err := addSums(ctx, j.Source, files, j.Workers); err != nil {
		return err
	}
	d, err := openOutputs(ctx, j, t, files)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := checkHeaders(d, t.ledger, earlier); err != nil {
		return err
	}
	r, err := back.NewRebuilder(d, j.outputs, j.Model, j.Workers, new(progress.Counters))
	if err != nil {
		return err
	}
	r.Outside = j.outside()
	r.Watch(earlier)
	if err := r.Run(ctx, files, nil, func(f model.File) error {
		j.Log.Info("source file rebuilt", "file", f.Path)
		if _, hashed := t.ledger.File(f.Path); !hashed {
			t.ledger.AddFile(ledger.File{Path: f.Path, Integrity: metadata.Proof, SHA256: f.SHA256})
		}
		return nil
	}); err != nil {
		return err
	}
	for _, o := range earlier {
		units, err := r.Ends(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Path, err)
		}
		t.ledger.Prove(o.Path, units)
	}
	return nil
}

// isFrom returns a test for outputs that are made from a source file, by its index.
func (j *job) isFrom(file int) func(*spans.Output) bool {
	return func(o *spans.Output) bool { // the one file is made of all
		return j.Model.From != nil || slices.Contains(o.Files(), file)
	}
}

// outside returns a function that reads from the source a tensor that the model leaves out, because
// a rebuilt file needs it between the tensors of the outputs.
func (j *job) outside() func(context.Context, model.File, safetensors.Tensor, io.Writer) error {
	dropped := make(map[string]bool, len(j.Plan.Dropped))
	for _, d := range j.Plan.Dropped {
		dropped[d.Source] = true
	}
	return func(ctx context.Context, f model.File, t safetensors.Tensor, w io.Writer) error {
		if !dropped[t.Name] {
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
}

// checkHeaders checks that outputs of earlier runs hold what the plan says, and nothing else that a
// loader would read.
func checkHeaders(d *model.DF11, made *ledger.Ledger, earlier []*spans.Output) error {
	stored := headers(d)
	for _, o := range earlier {
		done, _ := made.Output(o.Path)
		if err := forward.CheckStored(o, stored[done.Stored().Path]); err != nil {
			return err
		}
	}
	return nil
}

// headers returns the headers of a model's weight files, by path.
func headers(d *model.DF11) map[string]*safetensors.Header {
	stored := map[string]*safetensors.Header{}
	for _, w := range d.WeightFiles() {
		stored[w.Path] = w.Header
	}
	return stored
}

// openOutputs opens the outputs that no run has proved, and those that hold tensors of the given
// source files. It reads them in the folder or, by ranges, in the target repo.
func openOutputs(ctx context.Context, j *job, t *targets, from []model.File) (*model.DF11, error) {
	outputs := slices.DeleteFunc(slices.Clone(j.outputs), func(o *spans.Output) bool {
		done, _ := t.ledger.Output(o.Path)
		return !done.Unproved() &&
			!slices.ContainsFunc(from, func(f model.File) bool { return j.isFrom(f.Index)(o) })
	})
	return t.stored(ctx, outputs, j.Memory.Pieces)
}
