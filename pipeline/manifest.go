package pipeline

import (
	"strings"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// cpuDecoder names the decoder of the check that always runs.
const cpuDecoder = "df11-convert, package verify: windows, gaps, tables and output positions as the GPU kernel walks them"

// gpuMethod is the method of a verification by GPU in the manifest.
const gpuMethod = "gpu"

// manifest gathers what the run knows (docs/manifest.md); the small files are added once they are written.
func (r *run) manifest(sources []metadata.SourceFile) *metadata.Manifest {
	p := r.Plan
	m := &metadata.Manifest{
		Schema: metadata.SchemaVersion,
		Tool:   metadata.Tool{Name: "df11-convert", Version: r.Version},
		Source: metadata.Source{Repo: r.baseModel(), Commit: r.Model.Commit, Files: sources},
		Plan: metadata.PlanInfo{
			Digest: p.Digest(), Layout: string(p.Layout), Entry: p.Entry, Provenance: p.Provenance, Derived: p.Derived,
		},
		Differences: p.Differences,
	}
	for _, a := range p.Aliases {
		m.Aliases = append(m.Aliases, metadata.Alias{Name: a.Tensor.Source, Of: a.Of.Name})
	}
	for _, t := range p.Dropped {
		m.Dropped = append(m.Dropped, t.Source)
	}
	for _, s := range p.NotCopied {
		m.NotCopied = append(m.NotCopied, metadata.NotCopied{Path: s.Path, Why: s.Why})
	}
	r.manifestOutputs(m)
	return m
}

// baseModel is the Hub repo of the original; "" if it is not known.
func (o *Options) baseModel() string {
	if o.Model.Local {
		return o.BaseModel
	}
	return o.Model.ID
}

// manifestOutputs lists the weight files, the units in them, and what was proved about them.
func (r *run) manifestOutputs(m *metadata.Manifest) {
	cpu := metadata.Verification{Method: "cpu", Decoder: cpuDecoder, NExactF32: nExactF32(r.Plan)}
	gpu := metadata.Verification{Method: gpuMethod}
	for _, t := range r.tasks {
		o, _ := r.ledger.output(t.path)
		m.Outputs = append(m.Outputs, metadata.OutputFile{Path: o.Path, Kind: outputKind(r.Plan, t), Size: o.Size, SHA256: o.SHA256})
		for i, u := range t.units {
			m.Units = append(m.Units, manifestUnit(o, u, o.Units[i]))
			addProof(&cpu, u, o.Units[i])
			if o.Units[i].GPU {
				addProof(&gpu, u, o.Units[i])
			}
		}
		cpu.NTensors += int64(len(t.plain))
		t.eachTensor(func(x plan.Tensor, _ int64, _ *taskUnit) {
			if x.Name != x.Source {
				m.Renamed = append(m.Renamed, metadata.Rename{Source: x.Source, Name: x.Name})
			}
		})
	}
	m.Verification = append(m.Verification, cpu)
	switch {
	case gpu.NUnits == 0:
	case r.ledger.gpu != nil: // it was finished before
		gpu.Decoder, gpu.Device = r.ledger.gpu.Decoder, r.ledger.gpu.Device
		m.Verification = append(m.Verification, gpu)
	case r.GPU != nil:
		kernel, devices := r.GPU.Describe()
		gpu.Decoder, gpu.Device = kernel, strings.Join(devices, "; ")
		m.Verification = append(m.Verification, gpu)
	}
}

func outputKind(p *plan.Plan, t *task) metadata.Kind {
	switch {
	case p.Layout.Single():
		return metadata.KindSingle
	case len(t.units) > 0:
		return metadata.KindUnit
	}
	return metadata.KindRemainder
}

func manifestUnit(o Output, u *taskUnit, res UnitResult) metadata.Unit {
	m := metadata.Unit{
		Path: u.Path, File: o.Path, Status: metadata.Status(res.Status), Reason: res.Reason,
		NWeights: res.Weights, TieBroken: res.TieBroken, CodedBits: res.Bits, Exponents: manifestExponents(res.Exponents),
	}
	for _, a := range u.Attrs {
		t := metadata.UnitTensor{Name: a.Name, Shape: a.Shape}
		if a.ExactF32 {
			t.SourceDType = string(a.DType)
		}
		m.Tensors = append(m.Tensors, t)
	}
	return m
}

// addProof adds a unit to a proof.
func addProof(v *metadata.Verification, u *taskUnit, res UnitResult) {
	if res.Status == statusDF11 {
		v.NUnits++
		v.NWeights += res.Weights
	}
	v.NTensors += int64(len(u.Attrs))
}
