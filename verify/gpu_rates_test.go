//go:build !nogpu

package verify

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
)

// The goals of docs/gpu-results.md.
const (
	goalOfficial = 2.0 // times as fast as the official kernel
	goalCopy     = 0.4 // of what a copy on the device moves
	goalBus      = 0.7 // of what the bus moves both ways at once
)

// meter times work on a device with events.
type meter struct {
	*gpuDevice
	from, to cuda.Event
}

// median runs f with the slots in turn, so that no cache holds what it reads, and gives the median time.
func (m *meter) median(t *testing.T, f func(c *cuda.Context, s *gpuSlot) error) time.Duration {
	t.Helper()
	var times []time.Duration
	for i := range 3 + 30 { // the first three only load
		s := m.slots[i%len(m.slots)]
		err := m.Do(func(c *cuda.Context) error {
			err := errors.Join(c.Record(m.from, s.stream), f(c, s), c.Record(m.to, s.stream), c.Synchronize(s.stream))
			if err != nil {
				return err
			}
			d, err := c.Elapsed(m.from, m.to)
			if i >= 3 {
				times = append(times, d)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// openMeter opens the first device with slots that hold the whole piece, and fills them.
func openMeter(t *testing.T, opt GPUOptions, k *gpuKernel, u *Unit, p *gpuPiece) *meter {
	t.Helper()
	driver, err := cuda.Open(opt.driver)
	if err != nil {
		t.Fatal(err)
	}
	opt.slotSize, opt.sleep = p.size, time.Sleep
	d, err := openGPUDevice(driver, 0, k, &opt)
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{gpuDevice: d}
	err = d.Do(func(c *cuda.Context) (err error) {
		if m.from, err = c.NewEvent(true); err != nil {
			return err
		}
		m.to, err = c.NewEvent(true)
		return err
	})
	for _, s := range d.slots {
		err = errors.Join(err, p.fill(t.Context(), u, s.host, 4))
		if err == nil {
			err = s.decode(t.Context(), k, p, 1)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func report(t *testing.T, what string, d time.Duration, nBytes, nWeights int) {
	t.Helper()
	t.Logf("RATE %-40s %11.1f µs %8.1f GB/s %8.2f Gweights/s", what, float64(d)/1e3, float64(nBytes)/float64(d), float64(nWeights)/float64(d))
}

// judge prints what a goal is measured by.
func judge(t *testing.T, what string, measured, goal float64) {
	t.Helper()
	verdict := "missed"
	if measured >= goal {
		verdict = "met"
	}
	t.Logf("GOAL %-52s %6.2f, goal %.2f: %s", what, measured, goal, verdict)
}

// TestHardwareRates measures, on the first device; the lines with RATE and GOAL belong into docs/gpu-results.md. A goal
// that is missed is not a failure: the figures are what the run is for.
func TestHardwareRates(t *testing.T) {
	opt := hardware(t)
	opt.nDevices = 1
	n := rateWeights(t)
	s := encode(normalWeights(min(n, benchElems), 1))
	u, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	p := newPiece(u, chunkRange{0, u.nChunks})
	nMoved := p.nUpload + 2*p.nElems
	var copied, both time.Duration // of nMoved bytes on the device; of the piece's bytes on the bus
	decoded := map[string]time.Duration{}
	kernels := hardwareKernels(t, opt)
	for _, name := range slices.Sorted(maps.Keys(kernels)) {
		k, err := readKernel(kernels[name], 0)
		if err != nil {
			t.Fatal(err)
		}
		m := openMeter(t, opt, k, u, &p)
		if len(decoded) == 0 {
			t.Log("RATE device", m.describe)
		}
		if k.path == "" {
			copied, both = measureCopies(t, m, &p)
			report(t, "build tables, once for a slot and a unit", m.median(t, func(c *cuda.Context, s *gpuSlot) error { return k.buildTables(c, s, &p) }), 0, 0)
		}
		decoded[name] = m.median(t, func(c *cuda.Context, s *gpuSlot) error { return k.launch(c, s, &p) })
		report(t, "decode, "+name, decoded[name], nMoved, p.nElems)
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}
	if official := decoded["official"]; official > 0 {
		judge(t, "our kernel, times as fast as the official one", ratio(official, decoded["ours"]), goalOfficial)
	} else {
		t.Log("GOAL our kernel, times as fast as the official one: NOT RUN, there is no official kernel here")
	}
	judge(t, "our kernel, share of what a copy on the device moves", ratio(copied, decoded["ours"]), goalCopy)
	verified := measureCompare(t, opt, n)
	judge(t, "verification, share of what the bus moves", float64(both)/float64(p.nElems)/verified, goalBus)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// measureCopies measures the bounds: the device's memory, in the time for as many bytes as a decoding moves, and the bus,
// in the time for the piece's way there and back, both at once.
func measureCopies(t *testing.T, m *meter, p *gpuPiece) (device, bus time.Duration) {
	t.Helper()
	n := p.size / 2 &^ 255
	d := m.median(t, func(c *cuda.Context, s *gpuSlot) error {
		return c.CopyOnDevice(s.memory+cuda.Ptr(n), s.memory, n, s.stream)
	})
	report(t, "copy on the device, read + write", d, 2*n, 0)
	device = time.Duration(float64(d) * float64(p.nUpload+2*p.nElems) / float64(2*n))
	d = m.median(t, func(c *cuda.Context, s *gpuSlot) error {
		return c.CopyToHost(s.weights(p), s.memory+cuda.Ptr(p.out), s.stream)
	})
	report(t, "device to host, pinned", d, 2*p.nElems, 0)
	bus = m.bothWays(t, p)
	report(t, "both ways at once, as verification does", bus, p.nUpload+2*p.nElems, p.nElems)
	// Last: the upload is what the kernel finds.
	report(t, "host to device, pinned", m.median(t, func(c *cuda.Context, s *gpuSlot) error { return s.upload(c, p) }), p.nUpload, 0)
	return device, bus
}

// bothWays copies pieces to the device in one stream and weights from it in another, and gives the time for one of each.
func (m *meter) bothWays(t *testing.T, p *gpuPiece) time.Duration {
	t.Helper()
	const rounds = 30
	there, back := m.slots[0], m.slots[1] // whose streams differ
	var took time.Duration
	err := m.Do(func(c *cuda.Context) error {
		start := time.Now()
		for range rounds {
			if err := errors.Join(there.upload(c, p), c.CopyToHost(back.weights(p), back.memory+cuda.Ptr(p.out), back.stream)); err != nil {
				return err
			}
		}
		err := errors.Join(c.Synchronize(there.stream), c.Synchronize(back.stream))
		took = time.Since(start)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return took / rounds
}

// measureCompare measures whole verifications of a unit of n weights that is in memory, and gives the nanoseconds of a
// weight.
func measureCompare(t *testing.T, opt GPUOptions, n int) float64 {
	t.Helper()
	s := encode(normalWeights(n, 2))
	g, err := OpenGPU(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	const rounds = 5
	var took time.Duration
	for i := range 1 + rounds { // the first only loads
		start := time.Now()
		if err := s.onGPU(t.Context(), g, CompareOptions{}); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			took += time.Since(start)
		}
	}
	u, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	what := fmt.Sprintf("verification, %d pieces", len(cutPieces(u, g.opt.slotSize)))
	report(t, what, took/rounds, len(s.stream)+len(s.sm)+len(s.gaps)+len(s.source), n)
	return float64(took) / rounds / float64(n)
}

// rateWeights is how many weights are verified: 1 GiB of BF16, or as much as a third of the memory holds.
func rateWeights(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("DF11_GPU_WEIGHTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 {
			t.Fatalf("DF11_GPU_WEIGHTS=%s", text)
		}
		return n
	}
	const whole, each = 512 << 20, 4 // bytes of source, stream, gaps, sign_mantissa
	n := whole
	for available := availableMemory(); available > 0 && int64(n)*each*3 > available && n > benchElems; {
		n /= 2
	}
	if n < whole {
		t.Logf("NOT RUN: the verification of 1 GiB, for want of memory; of %d MiB instead, which may be too few pieces", 2*n>>20)
	}
	return n
}

// availableMemory is what the system says is left, in bytes; 0 if it says nothing.
func availableMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n int64
		if _, err := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &n); err == nil {
			return n << 10
		}
	}
	return 0
}
