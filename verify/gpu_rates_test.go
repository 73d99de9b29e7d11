package verify

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// The goals of docs/measured.md.
const (
	goalOfficial = 2.0 // times as fast as the official kernel
	goalBus      = 0.7 // share of what the bus moves both ways at once
)

// benchElems is the size of the main unit: 64 MiB of BF16, twice a large cache.
const benchElems = 32 << 20

const (
	// per sample; a single one takes hardly longer than its launch and the report of its end
	launches = 24
	samples  = 30                     // the median counts
	warmUp   = 300 * time.Millisecond // time for a GPU to raise its clock
)

// meter times work on a device.
type meter struct {
	*GPU
	slots []*gpuSlot
}

// sample runs f over the slots in turn, so that no cache holds what it reads, and returns the time
// of one call.
func (m meter) sample(t *testing.T, f func(c *cuda.Context, s *gpuSlot) error) time.Duration {
	t.Helper()
	var took time.Duration
	err := m.device.Do(func(c *cuda.Context) error {
		start := time.Now()
		for i := range launches {
			s := *m.slots[i%len(m.slots)]
			s.stream = m.slots[0].stream
			if err := f(c, &s); err != nil {
				return err
			}
		}
		err := m.slots[0].await(c)
		took = time.Since(start)
		return err
	})
	must(t, err)
	return took / launches
}

// await waits on the device's thread for the work in a slot's stream.
func (s *gpuSlot) await(c *cuda.Context) error {
	err := c.Record(s.done, s.stream)
	for reached := false; err == nil && !reached; {
		reached, err = c.Reached(s.done)
	}
	return err
}

// medians samples several kinds of work in turn on a warm device, so that clocks and heat are the
// same for all.
func medians(t *testing.T, kinds map[string]func() time.Duration) map[string]time.Duration {
	t.Helper()
	names := slices.Sorted(maps.Keys(kinds))
	for start := time.Now(); time.Since(start) < warmUp; {
		for _, name := range names {
			kinds[name]()
		}
	}
	times := map[string][]time.Duration{}
	for range samples {
		for _, name := range names {
			times[name] = append(times[name], kinds[name]())
		}
	}
	median := map[string]time.Duration{}
	for _, name := range names {
		slices.Sort(times[name])
		median[name] = times[name][samples/2]
	}
	return median
}

// openMeter opens the device with slots that hold the whole piece, and fills them.
func openMeter(t *testing.T, driver *cuda.Driver, opt GPUOptions, u *Unit, p *gpuPiece) meter {
	t.Helper()
	opt.slotSize = p.size
	g, err := openDevice(driver, 0, opt.withDefaults())
	must(t, err)
	m := meter{GPU: g}
	for range nSlots {
		s := <-g.free
		must(t, p.fill(t.Context(), u, s.host, 4))
		must(t, s.decode(p, 1))
		m.slots = append(m.slots, s)
	}
	return m
}

func report(t *testing.T, what string, d time.Duration, nBytes, nWeights int) {
	t.Helper()
	t.Logf("RATE %-40s %11.1f µs %8.1f GB/s %8.2f Gweights/s", what, float64(d)/1e3, float64(nBytes)/float64(d), float64(nWeights)/float64(d))
}

// judge prints how a measurement compares with its goal.
func judge(t *testing.T, what string, measured, goal float64) {
	t.Helper()
	verdict := "missed"
	if measured >= goal {
		verdict = "met"
	}
	t.Logf("GOAL %-52s %6.2f, goal %.2f: %s", what, measured, goal, verdict)
}

// TestHardwareRates measures. Its RATE and GOAL lines belong in docs/measured.md. Missing a goal
// isn't a failure, because the run is for the numbers.
func TestHardwareRates(t *testing.T) {
	opt := hardware(t)
	n := 512 << 20 // 1 GiB of BF16
	if text := os.Getenv("DF11_GPU_WEIGHTS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(t, err)
	}
	s := encode(plain.Normal(min(n, benchElems), 1))
	u, err := s.open()
	must(t, err)
	p := newPiece(u, chunkRange{0, u.nChunks})
	nMoved := p.nUpload + 2*p.nElems
	kernels := hardwareKernels(t, opt)
	driver, err := cuda.Open(opt.driver)
	must(t, err)
	meters, kinds := map[string]meter{}, map[string]func() time.Duration{}
	for name, ptx := range kernels {
		opt.kernel = hardwareKernel(ptx)
		m := openMeter(t, driver, opt, u, &p)
		meters[name] = m
		kinds[name] = func() time.Duration {
			return m.sample(t, func(c *cuda.Context, s *gpuSlot) error { return m.functions.launch(c, s, &p) })
		}
	}
	opt.kernel = nil
	ours := meters["ours"]
	t.Log("RATE device", ours.describe)
	decoded := medians(t, kinds)
	for _, name := range slices.Sorted(maps.Keys(decoded)) {
		report(t, "decode, "+name, decoded[name], nMoved, p.nElems)
	}
	both := ours.bothWays(t, &p)
	report(t, "both ways at once, as verification does", both, p.nUpload+2*p.nElems, p.nElems)
	for _, m := range meters {
		m.Close()
	}
	if official := decoded["official"]; official > 0 {
		judge(t, "our kernel, times as fast as the official one", float64(official)/float64(decoded["ours"]), goalOfficial)
	} else {
		t.Log("GOAL our kernel, times as fast as the official one: NOT RUN, there is no official kernel here")
	}
	verified := measureCompare(t, opt, n)
	judge(t, "verification, share of what the bus moves", float64(both)/float64(p.nElems)/verified, goalBus)
}

// bothWays copies pieces to the device in one stream and weights from it in another, and returns
// the time for one of each.
func (m meter) bothWays(t *testing.T, p *gpuPiece) time.Duration {
	t.Helper()
	const rounds = 30
	there, back := m.slots[0], m.slots[1] // their streams differ
	var took time.Duration
	err := m.device.Do(func(c *cuda.Context) error {
		start := time.Now()
		for range rounds {
			if err := errors.Join(there.upload(c, p), c.CopyToHost(back.weights(p), back.memory+cuda.Ptr(p.out), back.stream)); err != nil {
				return err
			}
		}
		err := errors.Join(there.await(c), back.await(c))
		took = time.Since(start)
		return err
	})
	must(t, err)
	return took / rounds
}

// measureCompare measures whole verifications of an in-memory unit with n weights, and returns
// nanoseconds per weight.
func measureCompare(t *testing.T, opt GPUOptions, n int) float64 {
	t.Helper()
	s := encode(plain.Normal(n, 2))
	g, err := OpenGPU(opt)
	must(t, err)
	defer g.Close()
	const rounds = 5
	var took time.Duration
	for i := range 1 + rounds { // the first only loads
		start := time.Now()
		must(t, s.onGPU(t.Context(), g, CompareOptions{}))
		if i > 0 {
			took += time.Since(start)
		}
	}
	u, err := s.open()
	must(t, err)
	what := fmt.Sprintf("verification, %d pieces", len(cutPieces(u, g.opt.slotSize)))
	report(t, what, took/rounds, len(s.stream)+len(s.sm)+len(s.gaps)+len(s.source), n)
	return float64(took) / rounds / float64(n)
}
