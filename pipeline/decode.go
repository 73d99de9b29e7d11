package pipeline

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
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// DecodeOptions say what is decoded and where to.
type DecodeOptions struct {
	DF11 *DF11
	// Model and Plan are the original, for its headers and hashes. Without them both come from the manifest.
	Model *Model
	Plan  *plan.Plan

	OutDir   string
	Workers  int
	Progress *Progress
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

// original is a weight file to write again.
type original struct {
	path   string
	header *safetensors.Header
	size   int64
	sha256 string
}

// Decode writes the original weight files again. Each gets its name only if its sha256 is the original's.
func Decode(ctx context.Context, opt DecodeOptions) (*DecodeReport, error) {
	if opt.Progress == nil {
		opt.Progress = new(Progress)
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
		if err := writeOriginal(ctx, r, f, opt.OutDir, opt.Progress); err != nil {
			return nil, fmt.Errorf("decode %s: %w", f.path, err)
		}
		report.Files++
		report.Bytes += f.size
		opt.Progress.Outputs.Add(1)
	}
	return report, writeIndex(opt.OutDir, files)
}

// shardName matches the name of one of several weight files.
var shardName = regexp.MustCompile(`^(.*)-\d{5}-of-\d{5}\.safetensors$`)

// writeIndex writes the index that loaders need for weights in several files. It says the same as the original's, but is
// not a copy of it.
func writeIndex(dir string, files []original) error {
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

// originals lists what to write and where its bytes are.
func (o *DecodeOptions) originals() ([]original, *rebuilder, error) {
	if o.Model == nil {
		return originalsOfManifest(o.DF11, o.Workers)
	}
	if len(o.Plan.Dropped) > 0 {
		return nil, nil, leftOut(o.Plan.Dropped)
	}
	var files []original
	for i, w := range o.Model.Plan.Weights {
		files = append(files, original{w.Path, w.Header, w.Size, o.Model.SHA256[i]})
	}
	return files, newRebuilder(o.DF11, newTasks(o.Plan), o.Workers), nil
}

// ErrNoManifest says that a DF11 model can't be decoded by itself.
var ErrNoManifest = errors.New("the model has no manifest, so the headers of the original files are not known")

func originalsOfManifest(d *DF11, workers int) ([]original, *rebuilder, error) {
	if d.Manifest == nil {
		return nil, nil, ErrNoManifest
	}
	if dropped := d.Manifest.Dropped; len(dropped) > 0 {
		return nil, nil, &LeftOutError{len(dropped), dropped[0]}
	}
	var files []original
	for _, f := range d.Manifest.Source.Files {
		if f.Header == "" {
			continue
		}
		h, err := safetensors.ParseHeader([]byte(f.Header), f.Size)
		if err != nil {
			return nil, nil, wrongf(manifestName, "header of %s: %v", f.Path, err)
		}
		files = append(files, original{f.Path, h, f.Size, f.SHA256})
	}
	return files, newManifestRebuilder(d, files, workers), nil
}

// newManifestRebuilder finds the places of the original tensors by the manifest alone.
func newManifestRebuilder(d *DF11, files []original, workers int) *rebuilder {
	r := newRebuilder(d, nil, workers)
	names := map[string]string{} // source name → output name
	for _, f := range files {
		for _, t := range f.header.Tensors {
			names[t.Name] = t.Name
		}
	}
	for _, x := range d.Manifest.Renamed {
		names[x.Source] = x.Name
	}
	for _, a := range d.Manifest.Aliases {
		names[a.Name] = a.Of
	}
	inUnit := unitPlaces(d.Manifest)
	wide := map[string]bool{}
	for _, f := range files {
		for _, t := range f.header.Tensors {
			wide[t.Name] = t.DType == "F32"
		}
	}
	for source, name := range names {
		p, ok := inUnit[name]
		if !ok {
			p = place{name: name}
		}
		s, stored := d.tensors[name]
		p.widen = wide[source] && (ok || stored && s.DType == "BF16")
		r.places[source] = p
	}
	return r
}

// unitPlaces gives the places of all weights in units, by output name.
func unitPlaces(m *metadata.Manifest) map[string]place {
	places := map[string]place{}
	for _, u := range m.Units {
		tu := &taskUnit{Unit: plan.Unit{Path: u.Path}}
		for _, t := range u.Tensors {
			n := int64(1)
			for _, x := range t.Shape {
				n *= x
			}
			tu.sizes = append(tu.sizes, n)
		}
		elem := int64(0)
		for i, t := range u.Tensors {
			places[t.Name] = place{unit: tu, elem: elem, name: t.Name}
			elem += tu.sizes[i]
		}
	}
	return places
}

// writeOriginal writes one file under a temporary name and checks its hash before it gets its own.
func writeOriginal(ctx context.Context, r *rebuilder, f original, dir string, p *Progress) error {
	name := filepath.Join(dir, filepath.FromSlash(f.path))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	w, err := atomicfile.Create(name, f.size)
	if err != nil {
		return err
	}
	defer w.Cleanup()
	h := sha256.New()
	if err := r.file(ctx, f.header, io.MultiWriter(w, h, countWriter{p})); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); f.sha256 != "" && got != f.sha256 {
		return wrongf("", "the decoded file has sha256 %s, the original has %s", got, f.sha256)
	}
	return w.Commit(f.size)
}

// countWriter counts decoded bytes as progress.
type countWriter struct{ p *Progress }

func (c countWriter) Write(b []byte) (int, error) {
	c.p.Verified.Add(int64(len(b)))
	return len(b), nil
}
