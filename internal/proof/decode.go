package proof

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// weightFile is a weight file of the original, to be written again.
type weightFile struct {
	path   string
	header *safetensors.Header
	size   int64
	sha256 string // "" if it is not known
}

// Decode writes the original weight files again. Each gets its name only if its sha256 is the original's.
func Decode(ctx context.Context, opt DecodeOptions) (*DecodeReport, error) {
	if opt.Progress == nil {
		opt.Progress = new(progress.Counters)
	}
	files, r, err := opt.originals()
	if err != nil {
		return nil, err
	}
	report := &DecodeReport{Model: opt.DF11.Name, Folder: opt.OutDir, Consulted: opt.Model != nil}
	for _, f := range files {
		opt.Progress.SourceBytes.Add(f.size)
	}
	opt.Progress.OutputFiles.Store(int64(len(files)))
	opt.Progress.SetPhase("decode")
	for _, f := range files {
		if err := opt.write(ctx, r, f); err != nil {
			return nil, fmt.Errorf("decode %s: %w", f.path, err)
		}
		report.Files++
		report.Bytes += f.size
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

// originals lists the files to write, and opens a Rebuilder that knows where their bytes are.
func (o *DecodeOptions) originals() ([]weightFile, *Rebuilder, error) {
	if o.Model == nil {
		return o.originalsOfManifest()
	}
	if len(o.Plan.Dropped) > 0 {
		return nil, nil, leftOut(o.Plan.Dropped)
	}
	var files []weightFile
	for i, w := range o.Model.Listing.Weights {
		files = append(files, weightFile{w.Path, w.Header, w.Size, o.Model.SHA256[i]})
	}
	return files, NewRebuilder(o.DF11, spans.Outputs(o.Plan), o.Workers), nil
}

func (o *DecodeOptions) originalsOfManifest() ([]weightFile, *Rebuilder, error) {
	m := o.DF11.Manifest
	if m == nil {
		return nil, nil, ErrNoManifest
	}
	if len(m.Dropped) > 0 {
		return nil, nil, &LeftOutError{len(m.Dropped), m.Dropped[0]}
	}
	var files []weightFile
	for _, f := range m.Source.Files {
		if f.Header == "" {
			continue
		}
		h, err := safetensors.ParseHeader([]byte(f.Header), f.Size)
		if err != nil {
			return nil, nil, model.Invalidf(metadata.ManifestName, "header of %s: %v", f.Path, err)
		}
		files = append(files, weightFile{f.Path, h, f.Size, f.SHA256})
	}
	r := NewRebuilder(o.DF11, nil, o.Workers)
	r.placeByManifest(m, files)
	return files, r, nil
}

// placeByManifest finds the places of the original files' tensors by the manifest alone.
func (r *Rebuilder) placeByManifest(m *metadata.Manifest, files []weightFile) {
	stored := map[string]string{} // source name → output name, where they differ
	for _, x := range m.Renamed {
		stored[x.Source] = x.Name
	}
	for _, a := range m.Aliases {
		stored[a.Name] = a.Of
	}
	inUnits := unitPlaces(m)
	for _, f := range files {
		for _, t := range f.header.Tensors {
			name, ok := stored[t.Name]
			if !ok {
				name = t.Name
			}
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
		elem := int64(0)
		for _, t := range x.Tensors {
			a := plan.Tensor{Name: t.Name, Shape: t.Shape}
			places[t.Name] = place{unit: u, elem: elem, name: t.Name}
			u.Attrs = append(u.Attrs, a)
			elem += a.NElems()
		}
	}
	return places
}

// write writes one file under a temporary name and checks its hash before it gets its own.
func (o *DecodeOptions) write(ctx context.Context, r *Rebuilder, f weightFile) error {
	name := filepath.Join(o.OutDir, filepath.FromSlash(f.path))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	w, err := atomicfile.Create(name, f.size)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	h := sha256.New()
	if err := r.file(ctx, f.header, io.MultiWriter(w, h, countWriter{o.Progress})); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); f.sha256 != "" && got != f.sha256 {
		return model.Invalidf("", "the decoded file has sha256 %s, the original has %s", got, f.sha256)
	}
	return w.Commit(f.size)
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
func writeIndex(dir string, files []weightFile) error {
	if len(files) < 2 {
		return nil
	}
	m := shardName.FindStringSubmatch(files[0].path)
	if m == nil {
		return nil
	}
	var list []metadata.IndexFile
	var total int64
	for _, f := range files {
		x := metadata.IndexFile{Path: path.Base(f.path)}
		for _, t := range f.header.Tensors {
			x.Tensors = append(x.Tensors, t.Name)
			total += t.NBytes()
		}
		list = append(list, x)
	}
	name := filepath.Join(dir, filepath.FromSlash(m[1]+".safetensors.index.json"))
	return atomicfile.WriteFile(name, metadata.RemainderIndex(list, total))
}
