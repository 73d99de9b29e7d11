package pipeline

import (
	"encoding/json"
	"time"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// A Report is the outcome of a conversion. Its JSON is that of the command,
// docs/output.schema.json.
type Report struct {
	Source   Source   `json:"source"`
	Target   Target   `json:"target"`
	Sizes    Sizes    `json:"sizes"`
	Made     Made     `json:"made"`
	Verified Verified `json:"verified"`
	// Note says that no known loader takes the result, and what large share stays BF16.
	Note string `json:"note,omitempty"`
	// Unloadable says that no known loader takes the result.
	Unloadable bool `json:"-"`
	// Left lists the files of a local source that weren't copied, because no reader of the model
	// opens them.
	Left []string `json:"left,omitempty"`
	// Decoded says of a DF11 source what its decoded weights were compared with. It's "" for any
	// other source.
	Decoded string `json:"-"`
}

// A Source is what was converted.
type Source struct {
	Name   string `json:"name"`
	Commit string `json:"commit,omitempty"`
	// Original is the Hub repo that the weights are those of, and OriginalCommit its commit. Both
	// are "" if that wasn't compared. Equal counts the files of a local source that were compared.
	Original       string `json:"original,omitempty"`
	OriginalCommit string `json:"original_commit,omitempty"`
	Equal          int    `json:"equal_files,omitempty"`
}

// A Target is where the result is.
type Target struct {
	Folder string `json:"folder,omitempty"`
	Repo   string `json:"repo,omitempty"`
	Branch string `json:"branch,omitempty"` // of Repo; "" for main
	URL    string `json:"url,omitempty"`
	// Commit is the commit of Repo that holds the finished result. ManifestSHA256 identifies all of
	// its bytes.
	Commit         string `json:"commit,omitempty"`
	ManifestSHA256 string `json:"manifest_sha256,omitempty"`
	// Part is set if the run made only a part, and the repo isn't finished.
	Part string `json:"part,omitempty"`
}

// Sizes compare source and result.
type Sizes struct {
	// BF16 is the size of the source's weights without those that are left out. It counts F32
	// weights as BF16. F32 is their size as stored. It's 0 if no weight is F32.
	BF16    int64   `json:"bf16_bytes"`
	F32     int64   `json:"f32_bytes,omitempty"`
	DF11    int64   `json:"df11_bytes"` // output weights
	Ratio   float64 `json:"ratio"`      // DF11 by BF16
	Units   int     `json:"units"`
	Weights int64   `json:"weights"` // in units
	Bits    int64   `json:"exponent_bits"`
}

// Made says what the result is like, and what this call did for it.
type Made struct {
	Files int `json:"files"`
	// Now counts the files that this call made; the others were there.
	Now         int      `json:"files_made"`
	UnitsBF16   []Unit   `json:"units_bf16,omitempty"`
	TiesBroken  []string `json:"limiter_ties,omitempty"`
	Differences []string `json:"differences,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
	// Seconds is the wall time. Stages says what each stage did.
	Seconds float64 `json:"seconds,omitempty"`
	Stages  []Stage `json:"stages,omitempty"`
}

// A Unit is a module that stays in BF16, because DF11 can't hold it.
type Unit struct {
	Path    string       `json:"path"`
	File    string       `json:"file,omitempty"`
	Status  string       `json:"status"`
	Reason  string       `json:"reason,omitempty"` // an encoder.Reason
	Weights int64        `json:"n_weights"`
	Tensors []UnitTensor `json:"tensors,omitempty"` // in encoding order
}

// A UnitTensor is one of a unit's weights.
type UnitTensor struct {
	Name    string  `json:"name"`
	Shape   []int64 `json:"shape"`
	SliceOf string  `json:"slice_of,omitempty"`
}

// A Stage is what one stage has done. Busy is summed over parallel workers.
type Stage struct {
	Stage string        `json:"stage"`
	Bytes int64         `json:"bytes"`
	Busy  time.Duration `json:"-"`
}

// MarshalJSON writes the time in seconds.
func (s Stage) MarshalJSON() ([]byte, error) {
	type stage Stage
	return json.Marshal(struct {
		stage
		Seconds float64 `json:"busy_seconds"`
	}{stage(s), s.Busy.Seconds()})
}

// Verified is what this call has verified. A conversion with a difference fails.
type Verified struct {
	// Weights counts the weights of units that were compared with the source, or that lie in source
	// files whose rebuilt SHA-256 was right. Rebuilt counts those files.
	Weights int64 `json:"weights"`
	Rebuilt int   `json:"files_rebuilt,omitempty"`
	// By says what decoded and compared them.
	By []Verification `json:"by,omitempty"`
	// Earlier counts the weights in files that this call took over from the run that verified them.
	Earlier int64 `json:"weights_earlier,omitempty"`
	// Now is false if the call took files of an earlier run without verifying them.
	Now bool `json:"by_this_run"`
	// UpToDate says that this call found everything done and published, and looked no further.
	UpToDate bool `json:"-"`
}

// A Verification is one check that was made.
type Verification struct {
	Method   string `json:"method"`
	Decoder  string `json:"decoder"`          // in words
	Device   string `json:"device,omitempty"` // model of the GPU
	NUnits   int64  `json:"n_units"`          // decoded from the stored bytes
	NTensors int64  `json:"n_tensors"`        // compared with the source, including copied ones
	NWeights int64  `json:"n_weights"`        // of units; all 16 bits compared and equal
	// NExactF32 counts the source's F32 weights whose lower half was read and is zero.
	NExactF32 int64 `json:"n_exact_f32,omitempty"`
}

// reportOf returns a report in plain types.
func reportOf(r *convert.Report) *Report {
	report := &Report{
		Source: Source(r.Source), Target: Target(r.Target), Sizes: Sizes(r.Sizes),
		Made: Made{Files: r.Made.Files, Now: r.Made.Now, TiesBroken: r.Made.TiesBroken,
			Differences: r.Made.Differences, Warnings: r.Made.Warnings, Seconds: r.Made.Seconds},
		Verified: Verified{Weights: r.Verified.Weights, Rebuilt: r.Verified.Rebuilt,
			By: verificationsOf(r.Verified.By), Earlier: r.Verified.Earlier, Now: r.Verified.Now,
			UpToDate: r.Verified.UpToDate},
	}
	for _, u := range r.Made.UnitsBF16 {
		unit := Unit{Path: u.Path, File: u.File, Status: string(u.Status), Reason: u.Reason,
			Weights: u.NWeights}
		for _, t := range u.Tensors {
			unit.Tensors = append(unit.Tensors, UnitTensor(t))
		}
		report.Made.UnitsBF16 = append(report.Made.UnitsBF16, unit)
	}
	for _, s := range r.Made.Stages {
		report.Made.Stages = append(report.Made.Stages, Stage(s))
	}
	return report
}

func verificationsOf(list []metadata.Verification) (made []Verification) {
	for _, v := range list {
		made = append(made, Verification(v))
	}
	return made
}
