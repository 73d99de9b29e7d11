package back

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// golden is a source and what the official compressor made of it.
const golden = "../../testdata/golden/e2e/qknorm"

// folders are copies of both, to be changed.
type folders struct {
	t            *testing.T
	source, df11 string
}

func newFolders(t *testing.T) folders {
	t.Helper()
	dir := t.TempDir()
	f := folders{t, filepath.Join(dir, "source"), filepath.Join(dir, "df11")}
	world.Must(t, os.CopyFS(f.source, os.DirFS(golden+"/source")))
	world.Must(t, os.CopyFS(f.df11, os.DirFS(golden+"/multi")))
	return f
}

func (f folders) write(name, text string) { world.Must(f.t, os.WriteFile(name, []byte(text), 0o644)) }

// flip turns one bit of the first byte of a stored tensor around.
func (f folders) flip(file, tensor string) {
	f.t.Helper()
	name := filepath.Join(f.df11, file)
	b := world.Read(f.t, name)
	h, err := new(safetensors.Headers).Read(bytes.NewReader(b), int64(len(b)))
	world.Must(f.t, err)
	x, ok := h.Lookup(tensor)
	if !ok {
		f.t.Fatalf("%s has no %s", file, tensor)
	}
	b[h.DataStart()+x.Begin] ^= 1
	f.write(name, string(b))
}

// open opens and plans both, as the commands do. The sums of the source's files are known.
func (f folders) open() Pair {
	f.t.Helper()
	d, err := model.OpenDF11Local(f.t.Context(), f.df11, 0)
	world.Must(f.t, err)
	f.t.Cleanup(func() { d.Close() })
	opt := OriginalOptions(d, plan.Options{})[0]
	src, m, err := model.OpenLocal(f.t.Context(), f.source, opt, 0)
	world.Must(f.t, err)
	f.t.Cleanup(func() { src.Close() })
	for i, w := range m.Listing.Weights {
		m.SHA256[i] = world.Sum(world.Read(f.t, filepath.Join(f.source, w.Path)))
	}
	p, err := PlanOriginal(f.t.Context(), d, m.Listing, opt)
	world.Must(f.t, err)
	return Pair{DF11: d, Source: src, Model: m, Plan: p}
}

// described is open with the manifest that a conversion would have written. The files may be
// changed behind it.
func (f folders) described() Pair {
	f.t.Helper()
	p := f.open()
	m := &metadata.Manifest{}
	for _, w := range p.Model.Files() {
		m.Source.Files = append(m.Source.Files, metadata.SourceFile{Path: w.Path, Size: w.Size,
			SHA256: w.SHA256, Header: string(w.Header.Raw)})
	}
	for _, u := range p.Plan.Units {
		stored, _ := p.DF11.Tensor(u.Path + ".luts")
		unit := metadata.Unit{Path: u.Path, File: stored.File}
		for _, a := range u.Attrs {
			unit.Tensors = append(unit.Tensors, metadata.UnitTensor{Name: a.Name, Shape: a.Shape})
		}
		m.Units = append(m.Units, unit)
	}
	for _, o := range p.DF11.Listing() {
		m.Outputs = append(m.Outputs, metadata.OutputFile{Path: o.Path, Size: o.Size,
			SHA256: world.Sum(world.Read(f.t, filepath.Join(f.df11, o.Path)))})
	}
	p.DF11.Manifest = m
	return p
}
