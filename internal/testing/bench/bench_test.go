// Package bench has only benchmarks: how fast this machine does each step of a conversion in memory,
// on generated weights. It has no code for the steps: it calls the same packages as a conversion.
// .ci/speed.sh measures whole conversions.
//
//	go test -run '^$' -bench . -benchtime 5x ./internal/testing/bench
//
// Gw/s are 10⁹ weights per second. MB/s are bytes of BF16, or of any data if there are no weights.
// "xnaive" compares with the naive loop on as many cores, which runs just before each measured run.
// Use xnaive to compare versions of this program, and the other figures to compare machines.
package bench

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// benchBytes is the size of the measured weights, far more than caches hold.
const benchBytes = 256 << 20

// makeWeights returns nBytes of BF16 weights that look trained, the same on every machine.
func makeWeights(tb testing.TB, nBytes int64) []byte {
	tb.Helper()
	file := hubtest.NewLlama(1, hubtest.ModelOptions{Layers: 1, Hidden: 1024, Vocab: int(nBytes / 2048)}).Weights[0]
	p := make([]byte, nBytes)
	if _, err := file.Body.ReadAt(p, file.Size-nBytes); err != nil {
		tb.Fatal(err)
	}
	return p
}

// BenchmarkSteps measures each step with the fastest inner loops for this processor; with -tags
// noasm, those in Go.
func BenchmarkSteps(b *testing.B) {
	l := newLab(b, makeWeights(b, benchBytes))
	for _, s := range l.steps() {
		l.compare(b, s)
	}
}

// compare measures a step next to the naive loop, on one core and on all. (It sets the number of
// cores itself, because a benchmark with Loop runs the first number of -cpu with another one.)
func (l *lab) compare(b *testing.B, s step) {
	for _, cores := range slices.Compact([]int{1, runtime.GOMAXPROCS(0)}) {
		b.Run(fmt.Sprintf("%s/cores=%d", s.name, cores), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			l.inTurns(b, s)
		})
	}
}

// inTurns runs a step and the naive loop in turns, so that a change of the machine's speed affects
// both, and reports the median of their ratios.
func (l *lab) inTurns(b *testing.B, s step) {
	b.SetBytes(int64(len(l.weights)))
	var seconds, ratios []float64
	for b.Loop() {
		b.StopTimer()
		naive := timed(b, l.naive)
		b.StartTimer()
		took := timed(b, s.run)
		seconds, ratios = append(seconds, took), append(ratios, naive/took)
	}
	b.ReportMetric(float64(len(l.weights)/2)/1e9/median(seconds), "Gw/s")
	b.ReportMetric(median(ratios), "xnaive")
}

// timed runs w once on all cores that the runtime may use and returns the seconds it took.
func timed(b *testing.B, w work) float64 {
	start := time.Now()
	if err := w(b.Context(), runtime.GOMAXPROCS(0)); err != nil {
		b.Fatal(err)
	}
	return time.Since(start).Seconds()
}

// TestSteps runs every step once on a few weights.
func TestSteps(t *testing.T) {
	l := newLab(t, makeWeights(t, 1<<20))
	for _, s := range l.steps() {
		if err := s.run(t.Context(), 2); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	if n := len(x); n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[len(x)/2]
}
