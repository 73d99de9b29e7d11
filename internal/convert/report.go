package convert

import (
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
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
	// Note says which large share of the model stays BF16. The caller sets it.
	Note string
	// Left lists the files of a local source that weren't copied, because no reader of the model
	// opens them.
	Left []string
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
	// BF16 is the size of the source's weights without those that are left out. It counts F32
	// weights as BF16. F32 is their size as stored. It's 0 if no weight is F32.
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

// SettledReport returns the report of a run that finds its target settled. Its sizes are the
// manifest's.
func SettledReport(s *publish.Settled) *Report {
	id, commit := s.Source.ID, s.Source.SHA
	r := &Report{
		Source:   Source{id, commit, id, commit, 0},
		Target:   Target{Repo: s.At.Repo, URL: s.At.URL, Commit: s.At.Commit, ManifestSHA256: s.SHA256},
		Made:     Made{Differences: s.Manifest.Differences},
		Verified: Verified{UpToDate: true},
	}
	for _, u := range s.Manifest.Units {
		r.add(u)
	}
	for _, f := range s.Manifest.Source.Files {
		r.Sizes.BF16 += f.Size - leftOutBytes(f, s.Manifest.Dropped)
	}
	for _, f := range s.Manifest.Outputs {
		if f.Kind.Weights() {
			r.Sizes.DF11 += f.Size
			r.Made.Files++
		}
	}
	r.Sizes.Ratio = float64(r.Sizes.DF11) / float64(max(1, r.Sizes.BF16))
	return r
}

// leftOutBytes returns the bytes of the tensors in a source file that a result leaves out, by its
// manifest.
func leftOutBytes(f metadata.SourceFile, dropped []string) (n int64) {
	if len(dropped) == 0 {
		return 0
	}
	h, err := new(safetensors.Headers).Parse([]byte(f.Header), f.Size)
	if err != nil {
		return 0
	}
	for _, name := range dropped {
		if t, ok := h.Lookup(name); ok {
			n += t.NBytes()
		}
	}
	return n
}

// report sums up the finished outputs.
func (s *state) report() *Report {
	repo, commit := s.original()
	r := &Report{
		Source: Source{s.Model.ID, s.Model.Commit, repo, commit, 0},
		Target: Target{Folder: s.OutDir},
		Made:   Made{Differences: s.Plan.Differences, Warnings: s.Plan.Warnings},
	}
	if o := s.Model.Origin; o != nil {
		r.Source.Equal = o.Equal
	}
	at := s.where()
	if s.to != nil {
		at = s.to.Where()
	}
	r.Target.Repo, r.Target.Branch, r.Target.URL = at.Repo, at.Branch, at.URL
	for _, o := range s.ledger.Outputs() {
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
	r.Verified.Now = s.Part.Whole() && r.Verified.Earlier == 0 || r.Made.Now == r.Made.Files
	s.sourceSizes(r)
	return r
}

// sourceSizes adds the sizes of the source or, like all other counts, those of the part.
func (s *state) sourceSizes(r *Report) {
	if !s.Part.Whole() {
		r.Target.Part, r.Sizes.BF16 = s.Part.String(), spans.ProvedBytes(s.Part.Of(s.outputs))
	} else {
		r.Sizes.BF16 = s.Plan.KeptBytes()
		if n := spans.NExactF32(s.Plan); n > 0 {
			r.Sizes.F32 = r.Sizes.BF16
			r.Sizes.BF16 -= 2 * n
		}
	}
	r.Sizes.Ratio = float64(r.Sizes.DF11) / float64(max(1, r.Sizes.BF16))
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

// checkGain refuses a model if DF11 can hold none of its modules: the result would be as large as
// the source.
func (r *Report) checkGain() error {
	var names []string
	for _, u := range r.Made.UnitsBF16 {
		names = append(names, u.Path+" ("+u.Reason+")")
	}
	if r.Sizes.Units > 0 || names == nil {
		return nil
	}
	return &plan.RefusedError{
		Detail: "DF11 can hold no module: " + human.List(names),
		Hint:   hint.NoGain,
	}
}
