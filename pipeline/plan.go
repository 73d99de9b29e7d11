package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// PlanOptions say what to forecast. The zero value forecasts what Convert does with zero options.
type PlanOptions struct {
	Options // of the conversion
	// SampleBytes limits how much of the weights is read to estimate the result's size. With
	// 0, Plan reads 1%, but at least 8 MB and at most 64 MiB; with -1, it reads none.
	SampleBytes int64
	// GPU names the memory of one GPU, in GiB, with the tokens of context and the sequences that
	// must fit next to the weights. If GiB is 0, the forecast lists the GPUs in common use.
	On GPUQuestion
}

// A GPUQuestion is a GPU and what it has to hold next to the weights. 0 sequences are one.
type GPUQuestion struct{ GiB, Context, Sequences int64 }

// Plan forecasts a conversion before any weight moves: it reads headers, small files, and samples.
// It says whether the source can be converted, how big the result will be, what making it takes,
// and which readers load it. With Original, it hashes the whole source, as Convert does. If the
// disk is too small, Plan returns an error along with the forecast, which says how much is needed.
func Plan(ctx context.Context, source string, opt PlanOptions) (*Forecast, error) {
	f, err := planSource(ctx, source, opt)
	return f, opt.ended(ctx, err)
}

func planSource(ctx context.Context, source string, opt PlanOptions) (_ *Forecast, err error) {
	if err := opt.part().Check(); err != nil {
		return nil, usage.Of(err)
	}
	s, err := opt.Means.begin(budget.ForConversion) // Plan itself keeps to the conversion's memory
	if err != nil {
		return nil, err
	}
	defer s.close()
	defer func() { err = s.judged(err) }()
	src, err := s.open(ctx, source, opt.Recipe, opt.OnHub)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	recipe, err := s.planOptionsAt(ctx, opt.Recipe, source, opt.OnHub)
	if err != nil {
		return nil, err
	}
	if err := src.planOfficial(ctx, recipe); err != nil {
		return nil, err
	}
	if opt.Original != "" {
		if err := s.prove(ctx, &opt.Options, src); err != nil {
			return nil, err
		}
	}
	most := max(0, opt.SampleBytes)
	if opt.SampleBytes == 0 {
		most = budget.DefaultSampleBytes(src.model)
	}
	size, err := budget.Sample(ctx, src.source, src.plan, most)
	if err != nil {
		return nil, fmt.Errorf("estimate %s: %w", src.model.ID, src.inexact(ctx, err))
	}
	if err := size.CheckGain(src.plan); err != nil {
		return nil, err
	}
	needs, err := budget.FindNeeds(src.model, src.plan, size,
		budget.Budget{Memory: s.shares, Disk: opt.Disk, Part: opt.part()})
	if err != nil && !wraps[*budget.DiskError](err) { // the forecast shows how much is missing
		return nil, err
	}
	if ctx.Err() != nil { // what follows is quick, unless there are very many tensors
		return nil, context.Cause(ctx)
	}
	f := newForecast(src, size, needs, opt.On)
	f.Published = s.published(ctx, src.model)
	return f, err
}

// published lists the model's DF11 repos on the Hub, according to their cards. If it can't, it logs
// a warning and returns nil.
func (s *session) published(ctx context.Context, m *model.Model) []string {
	if m.Local {
		return nil
	}
	c, err := s.client("source")
	var repos []string
	if err == nil {
		repos, err = c.Quantized(ctx, m.ID, "DF11")
	}
	if err != nil && !errors.Is(err, hub.ErrOffline) {
		s.Log.Warn("can't look for DF11 repos of the model: " + hub.Brief(err))
	}
	return repos
}
