package pipeline

import (
	"context"
	"errors"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
)

// DecodeOptions say which model is decoded and where to.
type DecodeOptions struct {
	back.Pair // without an original, its headers and hashes come from the manifest

	OutDir string
	// Force lets weights of others in OutDir stay, and replaces those with the names of the
	// original's.
	Force    bool
	Workers  int
	Progress *progress.Counters
}

// DecodeReport says what was written.
type DecodeReport struct {
	Model  string `json:"model"`
	Folder string `json:"folder"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	// of Files: they were in the folder already, with the right sha256
	There int `json:"files_there"`
	// Consulted: headers and hashes came from the original, not from the DF11 model's own manifest.
	Consulted bool `json:"original_consulted"`
}

// Decode writes the original weight files again. Each gets its name only if its sha256 is the
// original's. Files that are there already, with that sha256, stay: a run that was stopped is
// continued.
func Decode(ctx context.Context, opt DecodeOptions) (*DecodeReport, error) {
	if opt.Progress == nil {
		opt.Progress = new(progress.Counters)
	}
	files, r, err := opt.Rebuilder(opt.Workers, opt.Progress)
	if err != nil {
		return nil, err
	}
	if err := back.CheckPlaces(opt.DF11, opt.OutDir, files); err != nil {
		return nil, err
	}
	if err := addSums(ctx, opt.Source, files, opt.Workers); err != nil {
		return nil, err
	}
	opt.Progress.SetPhase("decode")
	out, err := back.OpenFolder(ctx, opt.OutDir, files, opt.DF11.Perm(), opt.Force)
	if err != nil {
		return nil, err
	}
	report := &DecodeReport{Model: opt.DF11.Name, Folder: opt.OutDir, Consulted: opt.Model != nil}
	err = r.Run(ctx, files, out, func(f model.File) error {
		if out.Has(f) {
			report.There++
		}
		report.Files++
		report.Bytes += f.Size
		return nil
	})
	if err == nil {
		err = out.Finish()
	}
	return report, errors.Join(err, out.Close())
}
