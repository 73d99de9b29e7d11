package budget_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// opened opens a folder and plans its conversion.
func opened(t *testing.T, dir string, opt plan.Options) (model.Source, *model.Model, *plan.Plan) {
	t.Helper()
	src, known, err := model.OpenLocal(t.Context(), dir, opt, 0)
	must(t, err)
	t.Cleanup(func() { src.Close() })
	p, err := plan.New(t.Context(), known.Listing, opt)
	must(t, err)
	return src, known, p
}

// converted converts a folder and returns the size of all output files.
func converted(t *testing.T, dir string, opt plan.Options) (size int64) {
	t.Helper()
	src, known, p := opened(t, dir, opt)
	out := t.TempDir()
	run, err := convert.Open(t.Context(), convert.Options{Source: src, Model: known, Plan: p, OutDir: out})
	must(t, err)
	_, err = run.Convert(t.Context())
	must(t, err)
	for _, f := range p.OutputFiles {
		st, err := os.Stat(filepath.Join(out, f.Path))
		must(t, err)
		size += st.Size()
	}
	return size
}

func written(t *testing.T, m *hubtest.Model) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	must(t, m.Write(dir))
	return dir
}

// must ends the test if err isn't nil.
var must = world.Must

// counted counts what is read from a source by ranges.
type counted struct {
	model.Source
	nBytes atomic.Int64
}

func (c *counted) ReadRange(ctx context.Context, file int, p []byte, off int64) error {
	c.nBytes.Add(int64(len(p)))
	return c.Source.ReadRange(ctx, file, p, off)
}

// estimated estimates a model with the given budget; -1 is the default.
func estimated(t *testing.T, dir string, opt plan.Options, maxBytes int64) *budget.Estimate {
	t.Helper()
	src, known, p := opened(t, dir, opt)
	if maxBytes < 0 {
		maxBytes = budget.DefaultSampleBytes(known)
	}
	c := &counted{Source: src}
	e, err := budget.Sample(t.Context(), c, p, maxBytes)
	must(t, err)
	if c.nBytes.Load() > maxBytes || c.nBytes.Load() != e.SampledBytes {
		t.Errorf("%d bytes read, %d reported, %d allowed", c.nBytes.Load(), e.SampledBytes, maxBytes)
	}
	return e
}

// For models larger than what may be read, the estimate is within 0.5% of the result. If nothing
// may be read, it assumes the usual ratio, which is within 3%.
func TestEstimateSampled(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]*hubtest.Model{
		"llama": hubtest.NewLlama(3, hubtest.ModelOptions{Layers: 4, Hidden: 512, Intermediate: 1408, Heads: 8, Vocab: 8192, ShardBytes: 12 << 20}),
		"qwen3": hubtest.NewQwen3(4, hubtest.ModelOptions{Layers: 24, Hidden: 256, Intermediate: 768, Heads: 4, Vocab: 16384, Tied: true}),
	} {
		dir := written(t, known)
		result := converted(t, dir, plan.Options{})
		_, _, p := opened(t, dir, plan.Options{})
		if likely := spans.LikelyBytes(world.Got(spans.Outputs(p))(t)); math.Abs(float64(likely)/float64(result)-1) > 0.03 {
			t.Errorf("%s: guessed %d, result %d", name, likely, result)
		}
		for maxBytes, most := range map[int64]float64{-1: 0.005, 2 << 20: 0.005, 1 << 20: 0.005, 0: 0.03} {
			e := estimated(t, dir, plan.Options{}, maxBytes)
			off := float64(e.OutputBytes)/float64(result) - 1
			t.Logf("%s: %d of %d bytes read: %+.3f %%", name, e.SampledBytes, known.Size(), 100*off)
			if math.Abs(off) > most {
				t.Errorf("%s: estimate %d, result %d: off by %.2f%%", name, e.OutputBytes, result, 100*off)
			}
			if e.Exact || (e.SampledBytes > 0) != (maxBytes != 0) || e.EmptyBits != 0 {
				t.Errorf("%s: exact %t after %d bytes, %d empty bits", name, e.Exact, e.SampledBytes, e.EmptyBits)
			}
		}
	}
}

// A model that may be read in full is laid out to the byte, including headers.
func TestEstimateExact(t *testing.T) {
	for _, known := range []string{"bias_f32", "qknorm"} {
		golden := filepath.Join("../../testdata/golden/e2e", known)
		dir := filepath.Join(golden, "source")
		file, err := os.ReadFile(filepath.Join(golden, "pattern_dict.json"))
		must(t, err)
		dict, err := catalog.ParsePatternDict(file)
		must(t, err)
		for _, layout := range []catalog.Layout{catalog.Transformers, catalog.TransformersSingle} {
			opt := plan.Options{PatternDict: dict, Layout: layout}
			result := converted(t, dir, opt)
			if e := estimated(t, dir, opt, -1); !e.Exact || e.OutputBytes != result {
				t.Errorf("%s %s: exact %t, estimate %d, result %d", known, layout, e.Exact, e.OutputBytes, result)
			}
		}
	}
}

// Weights that were FP8 leave the lower bits of the mantissa empty.
func TestEstimateUpCast(t *testing.T) {
	dir := written(t, hubtest.NewLlama(5, hubtest.ModelOptions{}))
	path := filepath.Join(dir, "model.safetensors")
	data, err := os.ReadFile(path)
	must(t, err)
	for i := 8 + int(binary.LittleEndian.Uint64(data)); i < len(data); i += 2 {
		data[i] &= 0xf0
	}
	must(t, os.WriteFile(path, data, 0o600))
	if e := estimated(t, dir, plan.Options{}, -1); e.EmptyBits != 4 {
		t.Errorf("%d empty bits", e.EmptyBits)
	}
}
