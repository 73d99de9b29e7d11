package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/pipeline"
)

// usualBandwidth is a gigabit line, for which times are given unless the user knows better.
const usualBandwidth = 125_000_000

// estimateFlags say how much of the weights a plan may read, and for which line it gives times.
type estimateFlags struct {
	sample    sizeFlag
	sampleSet func() bool
	bandwidth sizeFlag
}

func (f *estimateFlags) register(p *pflag.FlagSet) {
	p.Var(&f.sample, "sample-bytes", "read at most this much of the weights for the estimate; 0 reads none (default 1 % or 8 MB, whichever is more, at most 64 MiB)")
	f.sampleSet = func() bool { return p.Changed("sample-bytes") }
}

// budget is how many bytes of weights may be read.
func (f *estimateFlags) budget(m *pipeline.Model) int64 {
	if f.sampleSet() {
		return int64(f.sample)
	}
	return pipeline.DefaultSampleBytes(m)
}

// estimate samples the weights of a planned source.
func (f *estimateFlags) estimate(ctx context.Context, u *ui, o *opened) (*pipeline.Estimate, error) {
	n := f.budget(o.model)
	if n > 0 && !o.model.Local {
		u.say("reading samples of the weights, at most %s (--sample-bytes 0 turns this off)", human.Bytes(n))
	}
	e, err := pipeline.EstimateSize(ctx, o.source, o.plan, n)
	if err != nil {
		return nil, fmt.Errorf("estimate %s: %w", o.model.ID, err)
	}
	return e, nil
}

// estimateView is the estimate as the plan verb prints it.
type estimateView struct {
	OutputBytes  int64          `json:"output_bytes"`
	Exact        bool           `json:"exact"`
	SampledBytes int64          `json:"sampled_bytes"`
	Samples      int            `json:"samples"`
	Needs        pipeline.Needs `json:"needs"`
	Bandwidth    int64          `json:"bandwidth_bytes_per_second"`
	Download     float64        `json:"download_seconds"`
	Upload       float64        `json:"upload_seconds"`
	Push         float64        `json:"push_seconds"`
}

// view adds what follows from the estimate: needs and times.
func (f *estimateFlags) view(o *opened, e *pipeline.Estimate, b pipeline.Budget) (*estimateView, error) {
	needs, err := pipeline.FindNeeds(o.model, o.plan, e, b)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", o.model.ID, err)
	}
	v := &estimateView{
		OutputBytes: e.OutputBytes, Exact: e.Exact, SampledBytes: e.SampledBytes, Samples: e.Samples,
		Needs: needs, Bandwidth: int64(f.bandwidth),
	}
	if v.Bandwidth == 0 {
		v.Bandwidth = usualBandwidth
	}
	v.Download = float64(v.Needs.Download) / float64(v.Bandwidth)
	v.Upload = float64(v.Needs.Upload) / float64(v.Bandwidth)
	v.Push = max(v.Download, v.Upload)
	return v, nil
}

// how says in words what the estimate rests on.
func (v *estimateView) how() string {
	switch {
	case v.Exact:
		return "exact: all weights were read"
	case v.Samples == 0:
		return "nothing was sampled: the usual ratio of trained weights is assumed"
	}
	return fmt.Sprintf("estimated from %s of the weights in %d ranges", human.Bytes(v.SampledBytes), v.Samples)
}

// print writes a line for each need.
func (v *estimateView) print(row func(name, format string, args ...any)) {
	n := v.Needs
	row("disk", "%s with a folder as the target; %s with --push alone; --disk %s is the least", human.Bytes(n.Disk), human.Bytes(n.DiskPush), human.Bytes(n.DiskLeast))
	row("memory", "at most %s", human.Bytes(n.Memory))
	if n.Download > 0 {
		row("download", "%s in %d requests, %s at %s/s", human.Bytes(n.Download), n.DownloadRequests, seconds(v.Download), human.Bytes(v.Bandwidth))
	} else {
		row("download", "nothing: the source is local")
	}
	row("upload", "with --push %s in %d requests, %s at %s/s%s", human.Bytes(n.Upload), n.UploadRequests, seconds(v.Upload), human.Bytes(v.Bandwidth), v.overlap())
}

// overlap tells what both take together.
func (v *estimateView) overlap() string {
	if v.Download == 0 {
		return ""
	}
	return fmt.Sprintf("; both overlap, so %s in all", seconds(v.Push))
}

// seconds writes a duration for people.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Second:
		return "less than a second"
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
