package pipeline

import (
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// Report is the outcome of a conversion.
type Report struct {
	Source string `json:"source"`
	Commit string `json:"commit,omitempty"`
	// BaseModel is the Hub repo of the source, "" if it is not known; BaseCommit its commit.
	BaseModel  string `json:"base_model,omitempty"`
	BaseCommit string `json:"base_commit,omitempty"`

	Folder string `json:"folder,omitempty"`
	Repo   string `json:"repo,omitempty"`
	URL    string `json:"url,omitempty"`
	// TargetCommit is the commit of Repo that holds the finished result, ManifestSHA256 names all
	// of its bytes.
	TargetCommit   string `json:"target_commit,omitempty"`
	ManifestSHA256 string `json:"manifest_sha256,omitempty"`
	// set where only a part was made and the repo is not finished
	Part string `json:"part,omitempty"`
	// what was gained, in one line for people
	Gain string `json:"gain"`
	// source weights, those of F32 counted as the BF16 that they are
	BF16Bytes int64 `json:"bf16_bytes"`
	// source weights as they are stored, if some of them are F32
	F32Bytes   int64           `json:"f32_bytes,omitempty"`
	DF11Bytes  int64           `json:"df11_bytes"` // output weights
	Units      int             `json:"units"`
	Weights    int64           `json:"weights"` // in units
	Bits       int64           `json:"exponent_bits"`
	UnitsBF16  []metadata.Unit `json:"units_bf16,omitempty"`
	TiesBroken []string        `json:"limiter_ties,omitempty"`
	Files      int             `json:"files"`
	// of Files, by this run; the others were there
	Made        int      `json:"files_made"`
	GPU         bool     `json:"gpu"`
	Differences []string `json:"differences,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
	// Seconds is the wall time of this run, Stages what each stage did in it.
	Seconds float64          `json:"seconds"`
	Stages  []progress.Total `json:"stages"`
	// UpToDate: this run found everything done and published, and looked at nothing else.
	UpToDate bool `json:"-"`
	// Verified counts the weights of units that this run has compared with the source or, Rebuilt
	// files of it, rebuilt with their sha256.
	Verified int64 `json:"-"`
	Rebuilt  int   `json:"-"`
}

// report sums up the finished outputs.
func (s *state) report() *Report {
	p := &Report{Source: s.Model.ID, Commit: s.Model.Commit, BaseModel: s.baseModel(),
		BaseCommit: s.baseCommit(), Differences: s.Plan.Differences, Warnings: s.Plan.Warnings,
		Folder: s.OutDir}
	if s.repo != nil {
		p.Repo, p.URL = s.repo.Repo, s.repo.URL()
	}
	for _, w := range s.Model.Listing.Weights {
		p.BF16Bytes += w.Size
	}
	if n := spans.NExactF32(s.Plan); n > 0 {
		p.F32Bytes = p.BF16Bytes
		p.BF16Bytes -= 2 * n
	}
	var verified []metadata.Verification
	for _, o := range s.ledger.Outputs() {
		p.Files++
		before := p.Weights
		p.DF11Bytes += o.Size
		for _, u := range o.Units {
			p.add(u)
		}
		verified = metadata.AddVerified(verified, o.Verified)
		if o.Made {
			p.Made++
			p.Verified += p.Weights - before
		}
	}
	p.GPU = s.GPU != nil && metadata.ByGPU(verified).NUnits == int64(p.Units)
	if !s.Part.Whole() { // the source bytes are those of the part, as all other counts
		p.Part, p.BF16Bytes, p.F32Bytes = s.Part.String(), spans.ProvedBytes(
			s.Part.Of(s.outputs)), 0
	}
	p.Gain = s.Plan.Gain(p.BF16Bytes, p.DF11Bytes)
	return p
}

func (p *Report) add(u metadata.Unit) {
	if u.Status == metadata.BF16 {
		p.UnitsBF16 = append(p.UnitsBF16, u)
		return
	}
	p.Units++
	p.Weights += u.NWeights
	p.Bits += u.CodedBits
	if u.TieBroken {
		p.TiesBroken = append(p.TiesBroken, u.Path)
	}
}

// checkGain refuses a model of which DF11 can hold no module, so that the result is as large as the
// source.
func checkGain(outputs []ledger.Output) error {
	var names []string
	for _, o := range outputs {
		for _, u := range o.Units {
			if u.Status != metadata.BF16 {
				return nil
			}
			names = append(names, u.Path+" ("+u.Reason+")")
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &plan.RefusedError{
		Detail: "DF11 can hold no module: " + human.List(names),
		Hint:   "keep the model in BF16: as DF11 it would not be smaller",
	}
}
