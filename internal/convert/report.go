package convert

import (
	"cmp"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A Report is the outcome of a conversion.
type Report struct {
	Source   Source
	Target   Target
	Sizes    Sizes
	Made     Made
	Verified Verified
}

// A Source is what was converted.
type Source struct {
	Name   string
	Commit string
	// Original is the Hub repo that has the same weights, and OriginalCommit its commit. Both are
	// "" if they weren't compared. Equal counts the files of a local source that were compared.
	Original       string
	OriginalCommit string
	Equal          int
}

// A Target is where the result is.
type Target struct {
	Folder string
	Repo   string
	Branch string // of Repo; "" for main
	URL    string
	// Commit is the commit of Repo that holds the finished result. ManifestSHA256 identifies all of
	// its bytes.
	Commit         string
	ManifestSHA256 string
	// Part is set if the run made only a part, and the repo isn't finished.
	Part string
}

// Sizes compare source and result.
type Sizes struct {
	// BF16 is the size of the source's weights without those that are left out and copies of tied
	// ones. It counts F32 weights as BF16. F32 is their size as stored. It's 0 if no weight is F32.
	BF16    int64
	F32     int64
	DF11    int64   // output weights
	Ratio   float64 // DF11 by BF16
	Units   int
	Weights int64 // in units
	Bits    int64
}

// Made says what the result is like, and what this run did for it.
type Made struct {
	Files int
	// Now counts the files that this run made; the others were there.
	Now         int
	UnitsBF16   []metadata.Unit
	TiesBroken  []string
	Differences []string
	Warnings    []string
	// Seconds is the wall time. Stages says what each stage did.
	Seconds float64
	Stages  []progress.Total
}

// Verified is what this run has verified. A conversion with a difference fails.
type Verified struct {
	// Weights counts the weights of units that were compared with the source, or that lie in source
	// files whose rebuilt SHA-256 was right. Rebuilt counts those files.
	Weights int64
	Rebuilt int
	// By says what decoded and compared them.
	By []metadata.Verification
	// Earlier counts the weights in files that this run took over from the run that verified them.
	Earlier int64
	// Now is false if the run took files of an earlier run without verifying them.
	Now bool
	// UpToDate says that this run found everything done and published, and looked no further.
	UpToDate bool
}

// UpToDateReport returns the report of a run that finds its target up to date. Its sizes are the
// manifest's.
func UpToDateReport(s *publish.UpToDate) *Report {
	id, commit := s.Source.ID, s.Source.SHA
	r := &Report{
		Source: Source{id, commit, id, commit, 0},
		Target: Target{Repo: s.At.Repo, Branch: s.At.Branch, URL: s.At.URL, Commit: s.At.Commit,
			ManifestSHA256: s.SHA256},
		Made:     Made{Differences: s.Manifest.Differences},
		Verified: Verified{UpToDate: true},
	}
	for _, u := range s.Manifest.Units {
		r.add(u)
	}
	for _, f := range s.Manifest.Outputs {
		if f.Kind.Weights() {
			r.Sizes.DF11 += f.Size
			r.Made.Files++
		}
	}
	r.Sizes.compare(listedSizes(s.Manifest))
	return r
}

// listedSizes returns, of the source files that a manifest lists, the bytes without the tensors
// that are left out and the copies of tied ones, and how many F32 weights the units take.
func listedSizes(m *metadata.Manifest) (kept, nExactF32 int64) {
	inSource, taken := map[string]string{}, map[string]int64{} // weights by the source's names
	for _, r := range m.Renamed {
		inSource[r.Name] = r.Source
	}
	for _, u := range m.Units {
		for _, t := range u.Tensors {
			name := cmp.Or(t.SliceOf, t.Name)
			taken[cmp.Or(inSource[name], name)] += t.NElems()
		}
	}
	dropped := map[string]bool{}
	for _, name := range m.Dropped {
		dropped[name] = true
	}
	for _, a := range m.Aliases {
		dropped[a.Name] = true
	}
	for _, f := range m.Source.Files {
		kept += f.Size
		h, err := new(safetensors.Headers).Parse([]byte(f.Header), f.Size)
		if err != nil {
			continue
		}
		for _, t := range h.Tensors {
			if dropped[t.Name] {
				kept -= t.NBytes()
			}
			if t.DType == safetensors.F32 {
				nExactF32 += taken[t.Name]
			}
		}
	}
	return kept, nExactF32
}

// newReport sums up the finished outputs.
func newReport(j *job, t *targets) *Report {
	repo, commit := j.original()
	r := &Report{
		Source: Source{j.Model.ID, j.Model.Commit, repo, commit, 0},
		Target: Target{Folder: j.OutDir},
		Made:   Made{Differences: j.Plan.Differences, Warnings: j.Plan.Warnings},
	}
	if o := j.Model.Origin; o != nil {
		r.Source.Equal = o.Equal
	}
	at := t.where(j)
	r.Target.Repo, r.Target.Branch, r.Target.URL = at.Repo, at.Branch, at.URL
	for _, o := range t.ledger.Outputs() {
		before := r.Sizes.Weights
		for _, u := range o.Units {
			r.add(u)
		}
		r.Verified.By = metadata.AddVerified(r.Verified.By, o.Verified)
		r.Sizes.DF11 += o.Size
		r.Made.Files++
		if o.Made {
			r.Made.Now++
			r.Verified.Weights += r.Sizes.Weights - before
		} else if o.Earlier != nil {
			r.Verified.Earlier += r.Sizes.Weights - before
		}
	}
	r.Verified.Now = j.Part.Whole() && r.Verified.Earlier == 0 || r.Made.Now == r.Made.Files
	if j.Part.Whole() {
		r.Sizes.compare(j.Plan.KeptBytes(), spans.NExactF32(j.Plan))
	} else { // like all other counts, those of the part
		r.Target.Part = j.Part.String()
		r.Sizes.compare(spans.ProvedBytes(j.Part.Of(j.outputs)), 0)
	}
	return r
}

// compare sets the sizes of the source: its bytes as stored, of which nExactF32 weights are F32.
func (s *Sizes) compare(stored, nExactF32 int64) {
	s.BF16 = stored - 2*nExactF32
	if nExactF32 > 0 {
		s.F32 = stored
	}
	s.Ratio = float64(s.DF11) / float64(max(1, s.BF16))
}

func (r *Report) add(u metadata.Unit) {
	if u.Status == metadata.BF16 {
		r.Made.UnitsBF16 = append(r.Made.UnitsBF16, u)
		return
	}
	r.Sizes.Units++
	r.Sizes.Weights += u.NWeights
	r.Sizes.Bits += u.CodedBits
	if u.TieBroken {
		r.Made.TiesBroken = append(r.Made.TiesBroken, u.Path)
	}
}
