package main

import (
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/bench"
)

func TestPrintBench(t *testing.T) {
	var out strings.Builder
	printBench(&out, &bench.Report{
		CPU: "Abacus", Cores: 2, Size: 256 << 20, Rounds: 5,
		Stages: []bench.Stage{
			{Stage: bench.StageNaive, Path: "go", Cores: 1, GWeightsPerS: 0.5, GBPerS: 1, RatioToNaive: 1},
			{Stage: bench.StageSplitHistogram, Path: "avx512", Cores: 16, GWeightsPerS: 12.3456, GBPerS: 24.6912, RatioToNaive: 24.69},
		},
	})
	const want = `Abacus; cores: 2; BF16 weights: 268 MB; rounds: 5

stage              path  cores     Gw/s     GB/s  x naive
naive                go      1    0.500     1.00     1.00
split_histogram  avx512     16   12.346    24.69    24.69
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
