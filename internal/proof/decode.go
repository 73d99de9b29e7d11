package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// DecodeOptions say which model is decoded and where to.
type DecodeOptions struct {
	DF11 *model.DF11
	// Model and Plan are the original, for its headers and hashes. Without them both come from the manifest.
	Model *model.Model
	Plan  *plan.Plan

	OutDir   string
	Workers  int
	Progress *progress.Counters
}

// DecodeReport says what was written.
type DecodeReport struct {
	Model  string `json:"model"`
	Folder string `json:"folder"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	// Consulted: headers and hashes came from the original, not from the DF11 model's own manifest.
	Consulted bool `json:"original_consulted"`
}

// Decode writes the original weight files again. Each gets its name only if its sha256 is the original's.
func Decode(ctx context.Context, opt DecodeOptions) (*DecodeReport, error) {
	if opt.Progress == nil {
		opt.Progress = new(progress.Counters)
	}
	original, r, err := opt.original()
	if err != nil {
		return nil, err
	}
	files := original.Listing.Weights
	report := &DecodeReport{Model: opt.DF11.Name, Folder: opt.OutDir, Consulted: opt.Model != nil}
	for _, f := range files {
		opt.Progress.SourceBytes.Add(f.Size)
	}
	opt.Progress.OutputFiles.Store(int64(len(files)))
	opt.Progress.SetPhase("decode")
	for i, f := range files {
		if err := opt.write(ctx, r, f, original.SHA256[i]); err != nil {
			return nil, fmt.Errorf("decode %s: %w", f.Path, err)
		}
		report.Files++
		report.Bytes += f.Size
		opt.Progress.Outputs.Add(1)
	}
	return report, writeIndex(opt.OutDir, files)
}

// LeftOutError says that the original can't be rebuilt, since the model was made of a part of it: the other tensors of a
// checkpoint that holds several models were left out on purpose.
type LeftOutError struct {
	Tensors int
	First   string
}

func (e *LeftOutError) Error() string {
	if e.Tensors == 1 {
		return fmt.Sprintf("the original cannot be rebuilt: its tensor %s was left out", e.First)
	}
	return fmt.Sprintf("the original cannot be rebuilt: %d of its tensors were left out, such as %s", e.Tensors, e.First)
}

func leftOut(ts []plan.Tensor) error { return &LeftOutError{len(ts), ts[0].Source} }

// ErrNoManifest says that a DF11 model can't be decoded by itself.
var ErrNoManifest = errors.New("the model has no manifest, so the headers of the original files are not known")

// original is the model whose weight files are written, with a Rebuilder that knows where their bytes are.
func (o *DecodeOptions) original() (*model.Model, *Rebuilder, error) {
	if o.Model == nil {
		return o.originalOfManifest()
	}
	if len(o.Plan.Dropped) > 0 {
		return nil, nil, leftOut(o.Plan.Dropped)
	}
	return o.Model, NewRebuilder(o.DF11, spans.Outputs(o.Plan), o.Workers), nil
}

// originalOfManifest is the original as far as the manifest describes it: the headers and sums of its weight files.
func (o *DecodeOptions) originalOfManifest() (*model.Model, *Rebuilder, error) {
	m := o.DF11.Manifest
	if m == nil {
		return nil, nil, ErrNoManifest
	}
	if len(m.Dropped) > 0 {
		return nil, nil, &LeftOutError{len(m.Dropped), m.Dropped[0]}
	}
	original := &model.Model{}
	for _, f := range m.Source.Files {
		if f.Header == "" {
			continue
		}
		h, err := safetensors.ParseHeader([]byte(f.Header), f.Size)
		if err != nil {
			return nil, nil, model.Invalidf(metadata.ManifestName, "header of %s: %v", f.Path, err)
		}
		w := plan.WeightFile{File: plan.File{Path: f.Path, Size: f.Size}, Header: h}
		original.Listing.Weights, original.SHA256 = append(original.Listing.Weights, w), append(original.SHA256, f.SHA256)
	}
	r := NewRebuilder(o.DF11, nil, o.Workers)
	r.placeByManifest(m, original.Listing.Weights)
	return original, r, nil
}

// placeByManifest finds the places of the original files' tensors by the manifest alone.
func (r *Rebuilder) placeByManifest(m *metadata.Manifest, files []plan.WeightFile) {
	stored := map[string]string{} // source name → output name, where they differ
	for _, x := range m.Renamed {
		stored[x.Source] = x.Name
	}
	for _, a := range m.Aliases {
		stored[a.Name] = a.Of
	}
	inUnits := unitPlaces(m)
	for _, f := range files {
		for _, t := range f.Header.Tensors {
			name := cmp.Or(stored[t.Name], t.Name)
			p, inUnit := inUnits[name]
			s, plain := r.model.Tensor(name)
			p.name = name
			p.widen = t.DType == safetensors.F32 && (inUnit || plain && s.DType == safetensors.BF16)
			r.places[t.Name] = p
		}
	}
}

// unitPlaces gives the places of all weights in units, by output name.
func unitPlaces(m *metadata.Manifest) map[string]place {
	places := map[string]place{}
	for _, x := range m.Units {
		u := &spans.Unit{Unit: plan.Unit{Path: x.Path}}
		for _, t := range x.Tensors {
			places[t.Name] = place{unit: u, elem: u.NElems(), name: t.Name}
			u.Attrs = append(u.Attrs, plan.Tensor{Name: t.Name, Shape: t.Shape})
		}
	}
	return places
}

// write writes one file under a temporary name and checks its sha256 before it gets its own.
func (o *DecodeOptions) write(ctx context.Context, r *Rebuilder, f plan.WeightFile, want string) error {
	name := filepath.Join(o.OutDir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	w, err := atomicfile.Create(name, f.Size)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	if err := r.file(ctx, f.Header, io.MultiWriter(w, countWriter{o.Progress}), want); err != nil {
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

// shardName matches the name of one of several weight files.
var shardName = regexp.MustCompile(`^(.*)-\d{5}-of-\d{5}\.safetensors$`)

// writeIndex writes the index that loaders need for weights in several files. It says the same as the original's, but is
// not a copy of it.
func writeIndex(dir string, files []plan.WeightFile) error {
	if len(files) < 2 {
		return nil
	}
	m := shardName.FindStringSubmatch(files[0].Path)
	if m == nil {
		return nil
	}
	var list []metadata.IndexFile
	var total int64
	for _, f := range files {
		x := metadata.IndexFile{Path: path.Base(f.Path)}
		for _, t := range f.Header.Tensors {
			x.Tensors = append(x.Tensors, t.Name)
			total += t.NBytes()
		}
		list = append(list, x)
	}
	name := filepath.Join(dir, filepath.FromSlash(m[1]+".safetensors.index.json"))
	return atomicfile.WriteFile(name, metadata.RemainderIndex(list, total))
}
