package main

import (
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/spans"
)

// TestPartAuto: what Kubernetes, Slurm and our own variables say becomes a part; what does not say it clearly is refused.
func TestPartAuto(t *testing.T) {
	slurm := func(id, least, most, step, count string) map[string]string {
		return map[string]string{"SLURM_ARRAY_TASK_ID": id, "SLURM_ARRAY_TASK_MIN": least, "SLURM_ARRAY_TASK_MAX": most, "SLURM_ARRAY_TASK_STEP": step, "SLURM_ARRAY_TASK_COUNT": count}
	}
	for name, tc := range map[string]struct {
		env   map[string]string
		count int
		want  spans.Part // none: refused
	}{
		"nothing":               {nil, 4, spans.Part{}},
		"own":                   {map[string]string{"DF11_SHARD_INDEX": "2", "DF11_SHARD_COUNT": "3"}, 0, spans.Part{I: 2, N: 3}},
		"own, too large":        {map[string]string{"DF11_SHARD_INDEX": "4", "DF11_SHARD_COUNT": "3"}, 0, spans.Part{}},
		"own, too many":         {map[string]string{"DF11_SHARD_INDEX": "1", "DF11_SHARD_COUNT": "2000000000"}, 0, spans.Part{}},
		"Kubernetes":            {map[string]string{"JOB_COMPLETION_INDEX": "0"}, 3, spans.Part{I: 1, N: 3}},
		"Kubernetes, no number": {map[string]string{"JOB_COMPLETION_INDEX": "x"}, 3, spans.Part{}},
		"Kubernetes, no count":  {map[string]string{"JOB_COMPLETION_INDEX": "0"}, 0, spans.Part{}},
		"from 0":                {slurm("3", "0", "3", "1", "4"), 0, spans.Part{I: 4, N: 4}},
		"from 1":                {slurm("1", "1", "4", "1", "4"), 0, spans.Part{I: 1, N: 4}},
		"no step":               {slurm("1", "1", "4", "", "4"), 0, spans.Part{I: 1, N: 4}},
		"a step":                {slurm("4", "0", "4", "2", "3"), 0, spans.Part{I: 3, N: 3}},
		"same count":            {slurm("4", "0", "4", "2", "3"), 3, spans.Part{I: 3, N: 3}},
		"another count":         {slurm("4", "0", "4", "2", "3"), 5, spans.Part{}},
		"one task again":        {slurm("2", "2", "2", "1", "1"), 4, spans.Part{}},
		"a list":                {slurm("7", "1", "7", "1", "3"), 0, spans.Part{}},
		"end beside the step":   {slurm("4", "0", "5", "2", "3"), 0, spans.Part{I: 3, N: 3}},
		"no count":              {slurm("4", "0", "4", "2", ""), 3, spans.Part{}},
		"no number":             {slurm("x", "0", "4", "2", "3"), 0, spans.Part{}},
	} {
		f := partFlags{which: "auto", count: tc.count}
		got, err := f.part(func(name string) string { return tc.env[name] })
		if got != tc.want || (err != nil) != (tc.want == spans.Part{}) || err != nil && !as[usageError](err) {
			t.Errorf("%s: %v %v, want %v", name, got, err, tc.want)
		}
	}
}

// TestSlurmArrayMakesEveryPart: the ids of an array with a step give each part once.
func TestSlurmArrayMakesEveryPart(t *testing.T) {
	var parts []int
	for _, id := range []string{"0", "2", "4"} {
		env := map[string]string{"SLURM_ARRAY_TASK_ID": id, "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "4",
			"SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "3"}
		p, err := (&partFlags{which: "auto"}).part(func(name string) string { return env[name] })
		if err != nil || p.N != 3 {
			t.Fatal(p, err)
		}
		parts = append(parts, p.I)
	}
	if !slices.Equal(parts, []int{1, 2, 3}) {
		t.Errorf("parts %v", parts)
	}
}
