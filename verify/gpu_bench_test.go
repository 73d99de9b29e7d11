package verify

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
	"github.com/df11-convert/df11-convert/verify/internal/cuda"
)

// goalBus is the goal of docs/measured.md: the share of what the bus moves both ways at once.
const goalBus = 0.7

// rateElems is the size of the unit that measures the bus: 64 MiB of BF16.
const rateElems = 32 << 20

func report(b *testing.B, what string, d time.Duration, nBytes, nWeights int) {
	b.Helper()
	b.Logf("RATE %-40s %11.1f µs %8.1f GB/s %8.2f Gweights/s", what, float64(d)/1e3, float64(nBytes)/float64(d), float64(nWeights)/float64(d))
}

// BenchmarkHardware measures whole verifications. Run it with -benchtime 1x; its RATE and GOAL lines
// belong in docs/measured.md.
func BenchmarkHardware(b *testing.B) {
	opt := hardware(b)
	n := 512 << 20 // 1 GiB of BF16
	if text := os.Getenv("DF11_GPU_WEIGHTS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(b, err)
	}
	u, err := encode(plain.Normal(min(n, rateElems), 1)).open()
	must(b, err)
	p := newPiece(u, chunkRange{0, u.nChunks})
	both := bothWays(b, opt, u, &p)
	report(b, "both ways at once, as verification does", both, p.nUpload+2*p.nElems, p.nElems)
	share := float64(both) / float64(p.nElems) / measureCompare(b, opt, n)
	verdict := "missed"
	if share >= goalBus {
		verdict = "met"
	}
	b.Logf("GOAL verification, share of what the bus moves %6.2f, goal %.2f: %s", share, goalBus, verdict)
	b.ReportMetric(share, "of-bus")
}

// bothWays copies pieces to the device in one stream and weights from it in another, and returns
// the time for one of each.
func bothWays(b *testing.B, opt GPUOptions, u *Unit, p *gpuPiece) time.Duration {
	b.Helper()
	opt.slotSize = p.size
	g, err := OpenGPU(opt)
	must(b, err)
	defer g.Close()
	b.Log("RATE device", g.describe)
	there, back := <-g.free, <-g.free // their streams differ
	for _, s := range []*gpuSlot{there, back} {
		must(b, p.fill(b.Context(), u, s.host, 4))
		must(b, s.decode(p, 1))
	}
	const rounds = 30
	var took time.Duration
	must(b, g.device.Do(func(c *cuda.Context) error {
		start := time.Now()
		for range rounds {
			if err := errors.Join(there.upload(c, p), c.CopyToHost(back.weights(p), back.memory+cuda.Ptr(p.out), back.stream)); err != nil {
				return err
			}
		}
		err := errors.Join(there.await(c), back.await(c))
		took = time.Since(start)
		return err
	}))
	return took / rounds
}

// await waits on the device's thread for the work in a slot's stream.
func (s *gpuSlot) await(c *cuda.Context) error {
	err := c.Record(s.done, s.stream)
	for reached := false; err == nil && !reached; {
		reached, err = c.Reached(s.done)
	}
	return err
}

// measureCompare measures whole verifications of an in-memory unit with n weights, and returns
// nanoseconds per weight.
func measureCompare(b *testing.B, opt GPUOptions, n int) float64 {
	b.Helper()
	s := encode(plain.Normal(n, 2))
	g, err := OpenGPU(opt)
	must(b, err)
	defer g.Close()
	const rounds = 5
	var took time.Duration
	for i := range 1 + rounds { // the first only loads
		start := time.Now()
		must(b, s.onGPU(b.Context(), g, CompareOptions{}))
		if i > 0 {
			took += time.Since(start)
		}
	}
	u, err := s.open()
	must(b, err)
	what := fmt.Sprintf("verification, %d pieces", len(cutPieces(u, g.opt.slotSize)))
	report(b, what, took/rounds, len(s.stream)+len(s.sm)+len(s.gaps)+len(s.source), n)
	return float64(took) / rounds / float64(n)
}
