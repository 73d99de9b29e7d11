package convert

import (
	"cmp"
	"slices"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// newManifest gathers what the run knows (docs/manifest.md). The small files are added once they're
// made.
func newManifest(j *job, done *ledger.Ledger, sources []metadata.SourceFile) *metadata.Manifest {
	p := j.Plan
	repo, commit := j.original()
	m := &metadata.Manifest{
		Schema: metadata.SchemaVersion,
		Tool:   metadata.Tool{Name: "df11-convert", Version: j.Version},
		Source: metadata.Source{Repo: repo, Commit: commit, Files: sources},
		Plan: metadata.PlanInfo{
			Digest: p.Digest(), Layout: string(p.Layout), Dict: plan.DictDigest(p.PatternDict), Entry: p.Entry,
			Provenance: p.Provenance, Asked: j.Asked, Rules: plan.Rules,
		},
		NotCopied: p.NotCopied, Differences: p.Differences,
	}
	if j.Model.From != nil {
		m.Source.Arranged = j.Model.From.Class()
	}
	for _, a := range p.Aliases {
		m.Aliases = append(m.Aliases, metadata.Alias{Name: a.Tensor.Source, Of: a.Of.Name})
	}
	for _, t := range p.Dropped {
		m.Dropped = append(m.Dropped, t.Source)
	}
	j.listOutputs(m, done)
	return m
}

// listOutputs lists the weight files, the units in them, and what was verified of them.
func (j *job) listOutputs(m *metadata.Manifest, made *ledger.Ledger) {
	for _, o := range j.outputs {
		done, _ := made.Output(o.Path)
		m.Outputs = append(m.Outputs, metadata.OutputFile{Path: o.Path, Kind: outputKind(j.Plan, o),
			Size: done.Size, SHA256: done.SHA256, Digest: done.Digest, Earlier: done.Earlier})
		for i, u := range o.Units {
			unit := done.Units[i]
			unit.File, unit.Tensors = o.Path, unitTensors(u)
			m.Units = append(m.Units, unit)
		}
		if done.Earlier == nil {
			m.Verification = metadata.AddVerified(m.Verification, verifiedOf(o, done))
		}
		for t := range o.Tensors() {
			name := cmp.Or(t.SliceOf, t.Name)
			isFirst := t.SliceOf == "" || t.Name == t.SliceOf+".0" // the others are its slices, too
			if name != t.Source && isFirst {
				m.Renamed = append(m.Renamed, metadata.Rename{Source: t.Source, Name: name})
			}
		}
	}
}

// verifiedOf returns what this run has verified of an output, by comparing it or by rebuilding the
// source files from it.
func verifiedOf(o *spans.Output, done ledger.Output) []metadata.Verification {
	if done.Verified != nil {
		return done.Verified
	}
	return []metadata.Verification{forward.ByCPU(o, func(unit string) bool {
		return slices.ContainsFunc(done.Units, func(u metadata.Unit) bool {
			return u.Path == unit && u.Status == metadata.DF11
		})
	})}
}

func outputKind(p *plan.Plan, o *spans.Output) metadata.Kind {
	switch {
	case p.Layout.Single():
		return metadata.KindSingle
	case len(o.Units) > 0:
		return metadata.KindUnit
	}
	return metadata.KindRemainder
}

// unitTensors lists the weights of a unit.
func unitTensors(u *spans.Unit) (tensors []metadata.UnitTensor) {
	for _, a := range u.Attrs {
		tensors = append(tensors, metadata.UnitTensor{Name: a.Name, Shape: a.Shape, SliceOf: a.SliceOf})
	}
	return tensors
}
