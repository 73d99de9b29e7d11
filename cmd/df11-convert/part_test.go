package main

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/usage"
)

// TestPart: --shard asks for a part by its number or by the index that Kubernetes or Slurm gives.
// Everything else is refused.
func TestPart(t *testing.T) {
	slurm := func(id, least string) map[string]string {
		return map[string]string{"SLURM_ARRAY_TASK_ID": id, "SLURM_ARRAY_TASK_MIN": least}
	}
	pod := func(index string) map[string]string { return map[string]string{"JOB_COMPLETION_INDEX": index} }
	for name, tc := range map[string]struct {
		which string
		env   map[string]string
		want  spans.Part // none: refused
	}{
		"first":           {"1/4", nil, spans.Part{I: 1, N: 4}},
		"0":               {"0/4", nil, spans.Part{}},
		"too large":       {"5/4", nil, spans.Part{}},
		"the only one":    {"1/1", nil, spans.Part{I: 1, N: 1}},
		"no n":            {"1", nil, spans.Part{}},
		"no engine":       {"auto/4", nil, spans.Part{}},
		"first pod":       {"auto/3", pod("0"), spans.Part{I: 1, N: 3}},
		"pod behind n":    {"auto/3", pod("3"), spans.Part{}},
		"pod, no number":  {"auto/3", pod("x"), spans.Part{}},
		"array from 1":    {"auto/4", slurm("1", "1"), spans.Part{I: 1, N: 4}},
		"no least id":     {"auto/4", slurm("2", ""), spans.Part{I: 3, N: 4}},
		"array with gaps": {"auto/3", slurm("7", "1"), spans.Part{}},
		"below the least": {"auto/4", slurm("0", "1"), spans.Part{}},
	} {
		for _, name := range []string{"JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN"} {
			t.Setenv(name, tc.env[name])
		}
		got, err := (&partFlags{which: tc.which}).part()
		if refused := usage.Is(err); got != tc.want || refused != (tc.want == spans.Part{}) || !refused && err != nil {
			t.Errorf("%s: %v %v, want %v", name, got, err, tc.want)
		}
	}
}
