package pipeline

import (
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// cpuDecoder names the decoder of the check that always runs.
const cpuDecoder = "df11-convert, package verify: windows, gaps, tables and output positions as the GPU kernel walks them"

// newManifest gathers what the run knows (docs/manifest.md). The small files are added once they
// are made.
func newManifest(j *job, done *ledger.Ledger, sources []metadata.SourceFile) *metadata.Manifest {
	p := j.Plan
	m := &metadata.Manifest{
		Schema: metadata.SchemaVersion,
		Tool:   metadata.Tool{Name: "df11-convert", Version: j.Version},
		Source: metadata.Source{Repo: j.baseModel(), Commit: j.baseCommit(), Files: sources},
		Plan: metadata.PlanInfo{
			Digest: p.Digest(), Layout: string(p.Layout), Entry: p.Entry, Provenance: p.Provenance,
			Derived: p.Derived(),
		},
		NotCopied: p.NotCopied, Differences: p.Differences,
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

// listOutputs lists the weight files, the units in them, and what was verified about them.
func (j *job) listOutputs(m *metadata.Manifest, made *ledger.Ledger) {
	cpu := metadata.Verification{Method: metadata.MethodCPU, Decoder: cpuDecoder,
		NExactF32: spans.NExactF32(j.Plan)}
	gpu := metadata.Verification{Method: metadata.MethodGPU}
	for _, o := range j.outputs {
		done, _ := made.Output(o.Path)
		m.Outputs = append(m.Outputs, metadata.OutputFile{Path: o.Path, Kind: outputKind(j.Plan, o),
			Size: done.Size, SHA256: done.SHA256})
		for i, u := range o.Units {
			unit := done.Units[i]
			unit.File, unit.Tensors = o.Path, unitTensors(u)
			m.Units = append(m.Units, unit)
			addCompared(&cpu, unit)
			if unit.GPU {
				addCompared(&gpu, unit)
			}
		}
		cpu.NTensors += int64(len(o.Copied))
		for t := range o.Tensors() {
			if t.Name != t.Source {
				m.Renamed = append(m.Renamed, metadata.Rename{Source: t.Source, Name: t.Name})
			}
		}
	}
	m.Verification = append(m.Verification, cpu)
	if gpu.NUnits > 0 {
		gpu.Decoder, gpu.Device = j.GPU.Describe()
		m.Verification = append(m.Verification, gpu)
	}
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
		t := metadata.UnitTensor{Name: a.Name, Shape: a.Shape}
		if a.ExactF32 {
			t.SourceDType = string(a.DType)
		}
		tensors = append(tensors, t)
	}
	return tensors
}

// addCompared adds a unit to what a method has compared.
func addCompared(v *metadata.Verification, u metadata.Unit) {
	if u.Status == metadata.DF11 {
		v.NUnits++
		v.NWeights += u.NWeights
	}
	v.NTensors += int64(len(u.Tensors))
}
