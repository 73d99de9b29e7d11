package pipeline_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/estimate"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// counted counts what is read of a source by ranges.
type counted struct {
	model.Source
	nBytes atomic.Int64
}

func (c *counted) ReadRange(ctx context.Context, file int, off, n int64) ([]byte, error) {
	c.nBytes.Add(n)
	return c.Source.ReadRange(ctx, file, off, n)
}

// estimated estimates a model with the given budget (-1: the default).
func estimated(t *testing.T, dir string, opt plan.Options, maxBytes int64) *estimate.Estimate {
	t.Helper()
	src, known, p := openLocal(t, dir, opt)
	if maxBytes < 0 {
		maxBytes = estimate.DefaultSampleBytes(known)
	}
	c := &counted{Source: src}
	e, err := estimate.Sample(t.Context(), c, p, maxBytes)
	must(t, err)
	if c.nBytes.Load() > maxBytes || c.nBytes.Load() != e.SampledBytes {
		t.Errorf("%d bytes read, %d reported, %d allowed", c.nBytes.Load(), e.SampledBytes, maxBytes)
	}
	return e
}

// TestEstimateSampled: on models that are larger than what may be read, the estimate is within 0.5
// % of the result; where nothing may be read, the usual ratio is assumed, within 3 %.
func TestEstimateSampled(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]*hubtest.Model{
		"llama": hubtest.NewLlama(3, hubtest.ModelOptions{Layers: 4, Hidden: 512, Intermediate: 1408, Heads: 8, Vocab: 8192, ShardBytes: 12 << 20}),
		"qwen3": hubtest.NewQwen3(4, hubtest.ModelOptions{Layers: 24, Hidden: 256, Intermediate: 768, Heads: 4, Vocab: 16384, Tied: true}),
	} {
		dir := writeModel(t, known)
		r, err := convertLocal(t, dir, t.TempDir(), plan.Options{}, nil)
		must(t, err)
		_, _, p := openLocal(t, dir, plan.Options{})
		if likely := spans.LikelyBytes(spans.Outputs(p)); math.Abs(float64(likely)/float64(r.DF11Bytes)-1) > 0.03 {
			t.Errorf("%s: guessed %d, result %d", name, likely, r.DF11Bytes)
		}
		for maxBytes, most := range map[int64]float64{-1: 0.005, 2 << 20: 0.005, 1 << 20: 0.005, 0: 0.03} {
			e := estimated(t, dir, plan.Options{}, maxBytes)
			off := float64(e.OutputBytes)/float64(r.DF11Bytes) - 1
			t.Logf("%s: %d of %d bytes read in %d ranges: %+.3f %%", name, e.SampledBytes, known.Size(), e.Samples, 100*off)
			if math.Abs(off) > most {
				t.Errorf("%s: estimate %d, result %d: off by %.2f %%", name, e.OutputBytes, r.DF11Bytes, 100*off)
			}
			if e.Exact || (e.Samples > 0) != (maxBytes != 0) || (e.SampledBytes > 0) != (maxBytes != 0) || e.EmptyBits != 0 {
				t.Errorf("%s: exact %t after %d bytes in %d samples, %d empty bits", name, e.Exact, e.SampledBytes, e.Samples, e.EmptyBits)
			}
		}
	}
}

// TestEstimateExact: a model that may be read whole is laid out to the byte, headers included.
func TestEstimateExact(t *testing.T) {
	for _, known := range goldenModels {
		dir := filepath.Join(goldenE2E, known, "source")
		for _, layout := range []plan.Layout{plan.Transformers, plan.TransformersSingle} {
			opt := plan.Options{PatternDict: goldenDict(t, known), Layout: layout}
			r, err := convertLocal(t, dir, t.TempDir(), opt, nil)
			must(t, err)
			if e := estimated(t, dir, opt, -1); !e.Exact || e.OutputBytes != r.DF11Bytes {
				t.Errorf("%s %s: exact %t, estimate %d, result %d", known, layout, e.Exact, e.OutputBytes, r.DF11Bytes)
			}
		}
	}
}

// TestEstimateUpCast: weights that were FP8 leave the lower bits of the mantissa empty.
func TestEstimateUpCast(t *testing.T) {
	dir := writeModel(t, hubtest.NewLlama(5, hubtest.ModelOptions{}))
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

// TestEstimateLimit: planning a model on the Hub, headers and small files included, takes no more
// than 8 MB of it.
func TestEstimateLimit(t *testing.T) {
	w := newWorld(t, hubtest.NewLlama(3, hubtest.ModelOptions{Layers: 4, Hidden: 512, Intermediate: 1408, Heads: 8, Vocab: 8192, ShardBytes: 4 << 20}))
	c := w.client(t, func(o *hub.Options) { o.RangeBytes = 1 << 20 })
	src, known, p, err := openModel(t.Context(), c, sourceRepo, w.plan)
	must(t, err)
	e, err := estimate.Sample(t.Context(), src, p, estimate.DefaultSampleBytes(known))
	must(t, err)
	n := int64(0)
	for _, q := range w.Requests() {
		n += q.Sent
	}
	if n > 8_000_000 || e.SampledBytes == 0 {
		t.Errorf("%d bytes were read, %d of them samples", n, e.SampledBytes)
	}
}
