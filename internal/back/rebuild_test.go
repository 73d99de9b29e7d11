package back

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestRebuild checks that the original's file comes back, by the plan of the original or by the
// manifest alone, or that the error says what's wrong with the model.
func TestRebuild(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(f folders)
		says   string // of the fault
	}{
		{"good", func(folders) {}, ""},
		{"sign and mantissa", func(f folders) { f.flip("lm_head.safetensors", "lm_head.sign_mantissa") }, "the file has sha256"},
		{"codes", func(f folders) { f.flip("model_layers_1.safetensors", "model.layers.1.encoded_exponent") }, "SAYS has"},
		{"copied tensor", func(f folders) { f.flip("model.safetensors", "model.norm.weight") }, "the file has sha256"},
		{"positions", func(f folders) { f.flip("lm_head.safetensors", "lm_head.output_positions") }, "module lm_head: output_positions"},
		{"unit", func(f folders) { world.Must(t, os.Remove(filepath.Join(f.df11, "lm_head.safetensors"))) },
			"tensor lm_head.weight: the DF11 model doesn't have it"},
		{"sibling", func(f folders) { world.Must(t, os.Remove(filepath.Join(f.df11, "model.safetensors"))) }, "doesn't have it"},
	} {
		for _, workers := range []int{1, 3} {
			for _, planned := range []bool{true, false} {
				f := newFolders(t)
				known := f.described().DF11.Manifest
				tt.change(f)
				p, says := f.open(), strings.Replace(tt.says, "SAYS", "the original", 1)
				if p.DF11.Manifest = known; !planned {
					p.Model, p.Plan = nil, nil
					says = strings.Replace(tt.says, "SAYS", "the manifest", 1)
				}
				var counters progress.Counters
				files, r, err := p.Rebuilder(workers, &counters)
				world.Must(t, err)
				done := 0
				err = r.Run(t.Context(), files, nil, func(model.File) error { done++; return nil })
				fault := (*RebuildError)(nil)
				switch {
				case tt.says == "" && (err != nil || done != 1 || counters.Verified.Load() != files[0].Size):
					t.Errorf("%s, planned %v: %d files, %v", tt.name, planned, done, err)
				case tt.says != "" && (!errors.As(err, &fault) || fault.File != files[0].Path || !IsFault(err) ||
					!strings.Contains(err.Error(), says) || done != 0):
					t.Errorf("%s, planned %v: %d files, %v", tt.name, planned, done, err)
				}
			}
		}
	}
}

// TestRebuildInAFolder checks that a file gets its name once it's right. An existing right file
// stays, and nothing remains of a faulty model.
func TestRebuildInAFolder(t *testing.T) {
	f, out := newFolders(t), filepath.Join(t.TempDir(), "out")
	rebuild := func() (there int, err error) {
		p := f.open()
		files, r, err := p.Rebuilder(2, new(progress.Counters))
		world.Must(t, err)
		d, err := OpenFolder(t.Context(), out, files, 0o666, false)
		world.Must(t, err)
		err = r.Run(t.Context(), files, d, func(f model.File) error {
			if d.Has(f) {
				there++
			}
			return nil
		})
		return there, errors.Join(err, d.Close())
	}
	for run := range 2 {
		if there, err := rebuild(); err != nil || there != run {
			t.Errorf("run %d: %d files were there, %v", run, there, err)
		}
		if !bytes.Equal(world.Read(t, filepath.Join(out, "model.safetensors")), world.Read(t, filepath.Join(f.source, "model.safetensors"))) {
			t.Errorf("run %d: another file than the source's", run)
		}
	}
	f.flip("lm_head.safetensors", "lm_head.sign_mantissa")
	world.Must(t, os.Remove(filepath.Join(out, "model.safetensors")))
	if _, err := rebuild(); !IsFault(err) {
		t.Error("a fault:", err)
	}
	if left, err := os.ReadDir(out); len(left) != 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestOutside checks that a rebuild asks for tensors that the model doesn't hold, and that without
// anyone to ask, they are a fault.
func TestOutside(t *testing.T) {
	p := newFolders(t).open()
	source := world.Read(t, filepath.Join(golden, "source", "model.safetensors"))
	files := p.Model.Files()
	r, err := NewRebuilder(p.DF11, nil, p.Model, 1, new(progress.Counters))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), files, nil, nil); !IsFault(err) || !strings.Contains(err.Error(), "no place") {
		t.Error(err)
	}
	asked := 0
	r.Outside = func(_ context.Context, f model.File, x safetensors.Tensor, w io.Writer) error {
		asked++
		at := f.Header.DataStart() + x.Begin
		_, err := w.Write(source[at : at+x.NBytes()])
		return err
	}
	if err := r.Run(t.Context(), files, nil, func(model.File) error { return nil }); err != nil || asked != len(files[0].Header.Tensors) {
		t.Error(asked, err)
	}
	stop := errors.New("stop")
	r.Outside = func(context.Context, model.File, safetensors.Tensor, io.Writer) error { return stop }
	if err := r.Run(t.Context(), files, nil, nil); !errors.Is(err, stop) || IsFault(err) {
		t.Error("an error that is no fault:", err)
	}
}

// A unitCounter counts the units that are open at once.
type unitCounter struct {
	*rebuild
	most int
}

func (c *unitCounter) Write(b []byte) (int, error) {
	c.most = max(c.most, len(c.units.units))
	return len(b), nil
}

// TestOpenUnitsAreBounded checks that a rebuild of a file with more units than may be open at once
// closes some, and still gives the file back.
func TestOpenUnitsAreBounded(t *testing.T) {
	p := newFolders(t).open()
	files, r, err := p.Rebuilder(1, new(progress.Counters))
	world.Must(t, err)
	one := &rebuild{r, files[0], 1, newOpenUnits(r.model, 2), nil}
	count := &unitCounter{one, 0}
	world.Must(t, one.write(t.Context(), count))
	if count.most != 2 {
		t.Errorf("%d units were open at once, want 2", count.most)
	}
}
