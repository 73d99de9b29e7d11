package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
)

// DecodeOptions say where the original's files go. The zero value writes ./NAME-BF16, with the
// headers and hashes that the DF11 model's manifest has.
type DecodeOptions struct {
	Means
	// Recipe says how the original is read, as far as the DF11 model doesn't show it.
	Recipe Recipe
	// Against is the original that headers and hashes come from: a Hub repo, a folder, or a
	// .safetensors file.
	Against string
	// Folder gets the files; "" is ./NAME-BF16. With Force, other weights may stay there, and files
	// with the original's names are replaced.
	Folder string
	Force  bool
}

// A DecodeReport says what was written.
type DecodeReport struct {
	Model  string `json:"model"`
	Folder string `json:"folder"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	// Consulted says that headers and hashes came from the original, not from the manifest.
	Consulted bool `json:"original_consulted"`
	// Index is the index in the folder. It says the same as the original's, and may not be a copy.
	Index string `json:"index,omitempty"`
	// NotRestored lists files of the original that are neither written nor in the DF11 model.
	NotRestored []string `json:"not_restored,omitempty"`
}

// Decode writes the original weight files again. A file gets its name only if its SHA-256 is the
// original's. Files that are there already with that SHA-256 stay, so the same call continues one
// that was stopped.
func Decode(ctx context.Context, df11 string, opt DecodeOptions) (*DecodeReport, error) {
	report, err := decodeModel(ctx, df11, opt)
	if err := opt.ended(ctx, err); err != nil {
		return nil, err
	}
	return (*DecodeReport)(report), nil
}

func decodeModel(ctx context.Context, df11 string, opt DecodeOptions) (_ *convert.DecodeReport,
	err error) {
	s, err := opt.Means.begin(budget.ForReading)
	if err != nil {
		return nil, err
	}
	defer s.close()
	defer func() { err = s.judged(err) }()
	if _, err := s.planOptions(ctx, opt.Recipe); err != nil { // the original may not be read
		return nil, err
	}
	d, err := s.openDF11(ctx, df11)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if opt.Folder == "" {
		// the absolute path has a name even if the folder is "."
		at, err := filepath.Abs(strings.TrimSuffix(d.Name, ".safetensors"))
		if err != nil {
			return nil, err
		}
		opt.Folder = strings.TrimSuffix(filepath.Base(at), names.ResultEnd) + "-BF16"
		if err := notLink(opt.Folder); err != nil {
			return nil, err
		}
	}
	job := convert.DecodeOptions{Pair: back.Pair{DF11: d}, OutDir: opt.Folder, Force: opt.Force,
		Means: s.means()}
	if opt.Against != "" || d.Manifest == nil {
		src, err := s.openOriginal(ctx, d, opt.Against, opt.Recipe)
		if err != nil {
			return nil, err
		}
		defer src.Close()
		if src.refused != nil {
			return nil, hint.On(fmt.Errorf("%s isn't a conversion of %s: %w", d.Name, src.model.ID, src.refused),
				hint.NotOfPair.With("model", df11, "original", cmp.Or(opt.Against, src.model.ID)))
		}
		job.Pair = src.pair(d)
	}
	stop := s.watch()
	report, err := convert.Decode(ctx, job)
	stop(err)
	if job.Model == nil && model.SubjectOf(err) != "" && !wraps[*back.LeftOutError](err) {
		err = hint.On(err, hint.ByManifest.With("model", d.Name))
	}
	if job.Model != nil && opt.Against != "" && isOfPair(err) && hint.Of(err) == none {
		err = hint.On(err, hint.NotOfPair.With("model", df11, "original", opt.Against))
	}
	if err != nil {
		return nil, err
	}
	return report, nil
}
