package convert

import (
	"context"
	"errors"
	"slices"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
	"github.com/df11-convert/df11-convert/internal/model"
)

// DecodeOptions say which DF11 model is decoded, and where to.
type DecodeOptions struct {
	back.Pair // without an original, headers and hashes come from the manifest
	forward.Means

	// OutDir is the folder for the files. With Force, other weights may stay there, and files with
	// the original's names are replaced.
	OutDir string
	Force  bool
}

// DecodeReport says what was written.
type DecodeReport struct {
	Model  string
	Folder string
	Files  int
	Bytes  int64
	// Consulted says that headers and hashes came from the original, not from the manifest.
	Consulted bool
	// Index is the index in the folder. It says the same as the original's, and may not be a copy.
	Index string
	// NotRestored lists files of the original that are neither written nor in the DF11 model.
	NotRestored []string
}

// Decode writes the original weight files again. A file gets its name only if its SHA-256 is the
// original's. Files that are there already with that SHA-256 stay, so the same call continues a run
// that was stopped.
func Decode(ctx context.Context, opt DecodeOptions) (*DecodeReport, error) {
	opt.Complete()
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
	out, err := back.OpenFolder(ctx, opt.OutDir, files, opt.DF11.Perm(opt.OutDir), opt.Force)
	if err != nil {
		return nil, err
	}
	if err := checkSpace(opt.OutDir, out.Missing(files)); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	report := &DecodeReport{Model: opt.DF11.Name, Folder: opt.OutDir, Consulted: opt.Model != nil,
		Index: out.Index()}
	report.NotRestored = slices.DeleteFunc(opt.NotRestored(),
		func(file string) bool { return file == report.Index })
	err = r.Run(ctx, files, out, func(f model.File) error {
		report.Files++
		report.Bytes += f.Size
		return nil
	})
	if err == nil {
		err = out.Finish()
	}
	return report, errors.Join(err, out.Close())
}

// checkSpace refuses a disk on which so many bytes don't fit, before any is decoded.
func checkSpace(folder string, n int64) error {
	free, known := spool.FreeSpace(folder)
	if !known {
		return nil
	}
	return budget.Space{Folder: folder, Free: free, Stays: n}.Check(0)
}
