package back

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestStructure checks that faults in headers, config, and arrays are found, and name their place.
func TestStructure(t *testing.T) {
	remove := func(name string) func(folders) {
		return func(f folders) { world.Must(t, os.Remove(filepath.Join(f.df11, name))) }
	}
	for _, tt := range []struct {
		name   string
		change func(f folders)
		then   func(p *Pair)
		says   string
		pair   bool // the model alone is not at fault
	}{
		{"good", nil, nil, "", false},
		{"no config", remove("config.json"), nil, "without its dfloat11_config no loader", false},
		{"no unit", remove("lm_head.safetensors"), nil, "lm_head: it matches no module: it would load wrongly", false},
		{"no tensor", remove("model.safetensors"), nil, "model.norm.weight: stored nowhere", true},
		{"positions", func(f folders) { f.flip("lm_head.safetensors", "lm_head.output_positions") }, nil, "module lm_head: output_positions", false},
		{"split", func(f folders) { f.flip("model_layers_0.safetensors", "model.layers.0.split_positions") }, nil, "module model.layers.0: split_positions", true},
		{"another dict", nil, func(p *Pair) { p.DF11.Dict = p.DF11.Dict[1:] }, "lm_head: no pattern matches it", false},
		{"a plan of another dict", nil, func(p *Pair) { p.Plan.PatternDict = p.Plan.PatternDict[1:] }, "its pattern dict differs from the plan's", true},
		{"for ComfyUI", nil, func(p *Pair) { p.Plan.Layout = catalog.ComfyUI }, "one .safetensors file, not 6", false},
		{"of another component", nil, func(p *Pair) {
			p.DF11.Dir, p.Model.Listing.ModelIndex, p.Plan.Layout = "text_encoder", []byte("{}"), catalog.Diffusers
		}, "the modules are in text_encoder", true},
	} {
		f := newFolders(t)
		if tt.change != nil {
			tt.change(f)
		}
		p := f.open()
		if tt.then != nil {
			tt.then(&p)
		}
		c := NewChecker(p, 2, nil)
		units, err := c.Structure(t.Context())
		if err == nil {
			err = c.Fits(units)
		}
		got := c.Checked()
		if tt.says == "" && (err != nil || got.Units != 5 || got.BF16 != 0 || got.Tensors == 0) {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
		ofPair := errors.As(err, new(*DifferentError))
		if tt.says != "" && (IsFault(err) == ofPair || ofPair != tt.pair || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestHashes checks that sizes and free hashes are compared first, and hashes of weights in a
// folder only on request. Files for people aren't compared.
func TestHashes(t *testing.T) {
	at := func(m *metadata.Manifest, name string) *metadata.OutputFile {
		for i, o := range m.Outputs {
			if o.Path == name {
				return &m.Outputs[i]
			}
		}
		t.Fatal("no", name)
		return nil
	}
	for _, tt := range []struct {
		name        string
		change      func(m *metadata.Manifest)
		free, other string // what each says
	}{
		{"good", func(*metadata.Manifest) {}, "", ""},
		{"no config", func(m *metadata.Manifest) { at(m, "config.json").Path = "more.json" }, "lost", ""},
		{"unit", func(m *metadata.Manifest) { at(m, "lm_head.safetensors").SHA256 = "x" }, "", "the manifest has x"},
		{"unit's size", func(m *metadata.Manifest) { at(m, "lm_head.safetensors").Size++ }, "bytes, the manifest has", ""},
		{"no file", func(m *metadata.Manifest) { at(m, "lm_head.safetensors").Path = "tail.safetensors" },
			"tail.safetensors: the manifest lists it, but it's missing", ""},
	} {
		f := newFolders(t)
		f.write(filepath.Join(f.df11, "README.md"), "# Model\n")
		c := NewChecker(f.described(), 2, nil)
		tt.change(c.DF11.Manifest)
		free, other := c.FreeHashes(t.Context()), c.OtherHashes(t.Context())
		for i, err := range []error{free, other} {
			says := []string{tt.free, tt.other}[i]
			if says == "lost" && slices.Equal(c.Checked().Beside, []OtherFile{{"more.json", Missing}}) {
				says = "" // no fault of the model
			}
			if (err != nil) != (says != "") || err != nil && (!IsFault(err) || !strings.Contains(err.Error(), says)) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
	c := NewChecker(newFolders(t).open(), 1, nil)
	if err := errors.Join(c.FreeHashes(t.Context()), c.OtherHashes(t.Context())); err != nil {
		t.Error("without a manifest:", err)
	}
}

// TestManifestOfTheOriginal checks that a manifest with another SHA-256 of the original is noticed,
// and what decode needs and doesn't find in a manifest.
func TestManifestOfTheOriginal(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(m *metadata.Manifest)
		decode string // why the manifest alone is not enough
	}{
		{"good", func(*metadata.Manifest) {}, ""},
		{"sha256", func(m *metadata.Manifest) { m.Source.Files[0].SHA256 = world.Sum(nil) }, ""},
		{"no sha256", func(m *metadata.Manifest) { m.Source.Files[0].SHA256 = "" }, ErrNoSum.Error()},
		{"size", func(m *metadata.Manifest) { m.Source.Files[0].Size++ }, "header of model.safetensors"},
		{"header", func(m *metadata.Manifest) { m.Source.Files[0].Header += " " }, "header of model.safetensors"},
		{"no header", func(m *metadata.Manifest) { m.Source.Files[0].Header = "" }, "no header"},
		{"a file twice", func(m *metadata.Manifest) {
			again := m.Source.Files[0]
			again.Path = "again.safetensors"
			m.Source.Files = append(m.Source.Files, again)
		}, "model.safetensors and again.safetensors of the original hold "},
		{"dropped", func(m *metadata.Manifest) { m.Dropped = []string{"vae.x", "vae.y"} }, "its tensor vae.x was left out, 2 in all"},
	} {
		p := newFolders(t).described()
		tt.change(p.DF11.Manifest)
		if p.IsOfOther() != (tt.name == "sha256") {
			t.Errorf("%s: of another original: %v", tt.name, p.IsOfOther())
		}
		_, _, err := ofManifest(p.DF11, 1, nil)
		if (err != nil) != (tt.decode != "") || err != nil && !strings.Contains(err.Error(), tt.decode) {
			t.Errorf("%s, decode: %v", tt.name, err)
		}
	}
	p := newFolders(t).open()
	if _, _, err := ofManifest(p.DF11, 1, nil); !errors.Is(err, ErrNoManifest) {
		t.Error("without a manifest:", err)
	}
}
