package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/proof"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

// DecodeOptions say which model is decoded and where to.
type DecodeOptions struct {
	DF11 *model.DF11
	// Source, Model and Plan are the original, for its headers and hashes. Without them both come from the manifest.
	Source model.Source
	Model  *model.Model
	Plan   *plan.Plan

	OutDir string
	// Force lets weights of others in OutDir stay, and replaces those with the names of the original's.
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
	There  int    `json:"files_there"` // of Files: they were in the folder already, with the right sha256
	// Consulted: headers and hashes came from the original, not from the DF11 model's own manifest.
	Consulted bool `json:"original_consulted"`
}

// Decode writes the original weight files again. Each gets its name only if its sha256 is the original's. Files that are there
// already, with that sha256, stay: a run that was stopped is continued.
func Decode(ctx context.Context, opt DecodeOptions) (*DecodeReport, error) {
	if opt.Progress == nil {
		opt.Progress = new(progress.Counters)
	}
	original, r, err := opt.original()
	if err != nil {
		return nil, err
	}
	files := original.Listing.Weights
	if err := checkNames(files); err != nil {
		return nil, err
	}
	for _, f := range files {
		opt.Progress.SourceBytes.Add(f.Size)
	}
	opt.Progress.OutputFiles.Store(int64(len(files)))
	opt.Progress.SetPhase("decode")
	out, err := opt.open(ctx, original)
	if err != nil {
		return nil, err
	}
	report, err := opt.decode(ctx, r, original, out)
	return report, errors.Join(err, out.Close())
}

// decode writes the files that are not there, and the index.
func (o *DecodeOptions) decode(ctx context.Context, r *proof.Rebuilder, original *model.Model, out *target.Decoded) (*DecodeReport, error) {
	files := original.Listing.Weights
	report := &DecodeReport{Model: o.DF11.Name, Folder: o.OutDir, Consulted: o.Model != nil}
	index := indexOf(files)
	if err := index.check(o.OutDir, o.Force); err != nil {
		return nil, err
	}
	for i, f := range files {
		if out.Done[f.Path] {
			report.There++
			o.Progress.Verified.Add(f.Size)
			o.Progress.Found.Add(f.Size)
		} else if err := o.write(ctx, r, out, f, original.SHA256[i]); err != nil {
			return nil, fmt.Errorf("decode %s: %w", f.Path, err)
		}
		report.Files++
		report.Bytes += f.Size
		o.Progress.Outputs.Add(1)
	}
	return report, index.write(o.OutDir)
}

// open opens the folder for the original's files, unless the model itself lies there.
func (o *DecodeOptions) open(ctx context.Context, original *model.Model) (*target.Decoded, error) {
	var names []string
	var files []target.DecodedFile
	for i, f := range original.Listing.Weights {
		names = append(names, f.Path)
		files = append(files, target.DecodedFile{Path: f.Path, Size: f.Size, SHA256: original.SHA256[i]})
	}
	if own := o.DF11.Local(); own != "" {
		if err := target.RefuseInput(own, o.OutDir, names); err != nil {
			return nil, err
		}
	}
	for i, f := range files {
		if f.SHA256 != "" {
			continue
		}
		if o.Source == nil {
			return nil, fmt.Errorf("%s: %w", f.Path, ErrNoSum)
		}
		sum, err := fetch.Sum(ctx, o.Source, i, f.Path, f.Size)
		if err != nil {
			return nil, err
		}
		files[i].SHA256, original.SHA256[i] = sum, sum
	}
	return target.OpenDecoded(ctx, o.OutDir, files, o.Force)
}

// checkNames refuses names that are not those of weight files, since the manifest of a model, which nobody vouches for, gives
// them: a decoder that writes where it is told to could be told to write anything.
func checkNames(files []plan.WeightFile) error {
	taken := map[string]bool{}
	for _, f := range files {
		if !plan.IsWeightName(f.Path) || !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return model.Invalidf("", "the original's file %q has no plain .safetensors name and is not written", f.Path)
		}
		low := strings.ToLower(f.Path)
		if taken[low] {
			return model.Invalidf("", "two files of the original are %q where case does not count", f.Path)
		}
		taken[low] = true
	}
	if len(files) == 0 {
		return model.Invalidf("", "no file of the original is known")
	}
	return nil
}

// ErrNoSum says that nothing tells whether a decoded file would be right.
var ErrNoSum = errors.New("the manifest has no sha256 of the original file")

// original is the model whose weight files are written, with a Rebuilder that knows where their bytes are.
func (o *DecodeOptions) original() (*model.Model, *proof.Rebuilder, error) {
	if o.Model == nil {
		return proof.OriginalOfManifest(o.DF11, o.Workers)
	}
	if err := proof.CheckKept(o.Plan); err != nil {
		return nil, nil, err
	}
	original := *o.Model // to which sums are added
	original.SHA256 = slices.Clone(o.Model.SHA256)
	return &original, proof.NewRebuilder(o.DF11, spans.Outputs(o.Plan), o.Workers), nil
}

// write writes one file under a temporary name and checks its sha256 before it gets its own.
func (o *DecodeOptions) write(ctx context.Context, r *proof.Rebuilder, out *target.Decoded, f plan.WeightFile, want string) error {
	w, err := out.Create(f.Path, f.Size)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	if err := r.Write(ctx, f.Header, io.MultiWriter(w, countWriter{o.Progress}), want); err != nil {
		return err
	}
	return w.Commit(f.Size)
}

// countWriter counts decoded bytes as progress.
type countWriter struct{ p *progress.Counters }

func (c countWriter) Write(b []byte) (int, error) {
	c.p.Verified.Add(int64(len(b)))
	return len(b), nil
}
