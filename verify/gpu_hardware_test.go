//go:build !nogpu

package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/verify/internal/cuda"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// The tests of this file need a real GPU: testdata/gpu-run.sh runs them.
//
//	DF11_GPU=1       run them; without a GPU they fail
//	DF11_KERNEL      path of the official decode.ptx, tested beside ours
//	DF11_GPU_DRIVER  path of the driver's library, where the system does not find it

// hardware gives the options for a real GPU, or skips.
func hardware(t *testing.T) GPUOptions {
	t.Helper()
	if os.Getenv("DF11_GPU") != "1" {
		t.Skip("needs a GPU: set DF11_GPU=1, or run testdata/gpu-run.sh")
	}
	return GPUOptions{Mode: GPURequire, driver: os.Getenv("DF11_GPU_DRIVER")}
}

// hardwareKernels are the kernels by name: ours by either of its ways, and the official one if it is there.
func hardwareKernels(t *testing.T) map[string]string {
	t.Helper()
	ours := filepath.Join(t.TempDir(), "ours.ptx")
	if err := os.WriteFile(ours, []byte(kernel.PTX()), 0o600); err != nil {
		t.Fatal(err)
	}
	kernels := map[string]string{"ours": "", "ours, official interface": ours}
	if official := os.Getenv("DF11_KERNEL"); official != "" {
		kernels["official"] = official
	} else {
		t.Log("NOT TESTED: the official kernel; DF11_KERNEL does not name it")
	}
	return kernels
}

func (s *stored) onGPU(ctx context.Context, g *GPU, opt CompareOptions) error {
	if opt.Sizes == nil {
		opt.Sizes = s.sizes
	}
	return g.Compare(ctx, s.arrays(), int64(len(s.source)/2), bytes.NewReader(s.source), opt)
}

// gpuShapes are units of all kinds, some of many pieces.
func gpuShapes() map[string][]byte {
	rng := rand.New(rand.NewPCG(31, 4))
	oneBit := normalWeights(200_000, 5)
	for i := range oneBit {
		if i/2%6 != 0 {
			oneBit[i] = 0
		}
	}
	skewed := make([]uint8, 300_000)
	for i := range skewed {
		if skewed[i] = 120; rng.IntN(5) == 0 {
			skewed[i] = uint8(100 + rng.IntN(30))
		}
	}
	flat := make([]uint8, 100_000)
	for i := range flat {
		flat[i] = uint8(rng.IntN(240))
	}
	return map[string][]byte{
		"normal": normalWeights(700_000, 9), "skewed": fromSymbols(skewed, rng), "flat": fromSymbols(flat, rng),
		"long codes": fibWeights(25, 3), "one-bit codes": oneBit, "two weights": normalWeights(2, 1),
	}
}

// mustDecode compares units whole and in the smallest pieces, with little and with much shared memory.
func mustDecode(t *testing.T, opt GPUOptions, units map[string]*stored) {
	t.Helper()
	for _, size := range []int{minSlot, 1 << 20, 64 << 20} {
		for _, nShared := range []int{0, 60_000} {
			opt.slotSize, opt.nShared = size, nShared
			g, err := OpenGPU(opt)
			if err != nil {
				t.Fatal(err)
			}
			for name, u := range units {
				if err := u.onGPU(t.Context(), g, CompareOptions{}); err != nil {
					t.Errorf("%s, slots of %d bytes, %d bytes of shared memory: %v", name, size, nShared, err)
				}
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestHardwareDecode is the proof: every kind of unit, bit for bit, by every kernel.
func TestHardwareDecode(t *testing.T) {
	opt := hardware(t)
	units := map[string]*stored{}
	for name, weights := range gpuShapes() {
		units[name] = encode(weights)
	}
	rng := rand.New(rand.NewPCG(300, 1))
	for i := 0; len(units) < 300; i++ {
		symbols := make([]uint8, 2+rng.IntN(1+rng.IntN(60_000)))
		base, spread := rng.IntN(150), 0.5+3*rng.Float64()
		for k := range symbols {
			symbols[k] = uint8(base + min(89, int(rng.ExpFloat64()*spread)))
		}
		u := encode(fromSymbols(symbols, rng))
		if _, err := u.open(); err == nil { // else DF11 cannot hold it
			units[fmt.Sprint("random ", i)] = u
		}
	}
	for name, path := range hardwareKernels(t) {
		t.Run(name, func(t *testing.T) {
			opt.Kernel = path
			mustDecode(t, opt, units)
		})
	}
}

func TestHardwareGolden(t *testing.T) {
	opt := hardware(t)
	units := map[string]*stored{}
	for _, name := range goldenUnits(t) {
		if u, c := loadGolden(t, name); c.Official.Result == "ok" && len(c.Kernel.Problems) == 0 {
			units[name] = u
		}
	}
	for name, path := range hardwareKernels(t) {
		t.Run(name, func(t *testing.T) {
			opt.Kernel = path
			mustDecode(t, opt, units)
		})
	}
}

// TestHardwareMismatch demands that one wrong bit in the source is found where it is.
func TestHardwareMismatch(t *testing.T) {
	g, err := OpenGPU(hardware(t))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	u := encode(normalWeights(600_000, 11))
	for _, i := range []int{0, 1, 299_999, 599_999} {
		bad := u.clone()
		bad.source[2*i] ^= 1
		var m *MismatchError
		if err := bad.onGPU(t.Context(), g, CompareOptions{}); !errors.As(err, &m) || m.Elem != int64(i) {
			t.Errorf("bit 0 of weight %d: %v", i, err)
		}
	}
}

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

func report(t *testing.T, what string, d time.Duration, nBytes, nWeights int) {
	t.Helper()
	t.Logf("RATE %-36s %9.1f µs %8.1f GB/s %8.2f Gweights/s", what, float64(d)/1e3, float64(nBytes)/float64(d), float64(nWeights)/float64(d))
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
		err = errors.Join(err, u.fillPiece(p, s.host, 4))
		if err == nil {
			err = errors.Join(s.enqueue(k, p), s.wait(t.Context()))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestHardwareRates measures; the lines with RATE belong into docs/gpu-results.md.
func TestHardwareRates(t *testing.T) {
	opt := hardware(t)
	s := benchUnits["normal"]()
	u, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	p := u.newPiece(chunkRange{0, u.nChunks})
	nMoved := p.nUpload + 2*p.nElems
	for name, path := range hardwareKernels(t) {
		k, err := readKernel(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		m := openMeter(t, opt, k, u, &p)
		if path == "" {
			t.Log("RATE device ", m.describe)
			measureCopies(t, m, &p)
		}
		d := m.median(t, func(c *cuda.Context, s *gpuSlot) error { return k.launch(c, s, &p) })
		report(t, "decode, "+name, d, nMoved, p.nElems)
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}
	measureCompare(t, opt, s)
}

// measureCopies measures the bounds: the device's memory, and the way there and back.
func measureCopies(t *testing.T, m *meter, p *gpuPiece) {
	t.Helper()
	n := p.size / 2 &^ 255
	d := m.median(t, func(c *cuda.Context, s *gpuSlot) error {
		return c.CopyOnDevice(s.memory+cuda.Ptr(n), s.memory, n, s.stream)
	})
	report(t, "copy on the device, read + write", d, 2*n, 0)
	d = m.median(t, func(c *cuda.Context, s *gpuSlot) error {
		return c.CopyToHost(s.weights(p), s.memory+cuda.Ptr(p.out), s.stream)
	})
	report(t, "device to host, pinned", d, 2*p.nElems, 0)
	d = m.median(t, func(c *cuda.Context, s *gpuSlot) error { return c.CopyToDevice(s.memory, s.host[:p.nUpload], s.stream) })
	report(t, "host to device, pinned", d, p.nUpload, 0) // last: the upload must be what the kernel finds
}

// measureCompare measures whole verifications of a unit that is in memory.
func measureCompare(t *testing.T, opt GPUOptions, s *stored) {
	t.Helper()
	g, err := OpenGPU(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	const rounds = 10
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
	report(t, "verification, all in all", took/rounds, len(s.stream)+len(s.sm)+len(s.gaps)+len(s.source), len(s.sm))
}
