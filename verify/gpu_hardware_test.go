package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/golden"
	"github.com/df11-convert/df11-convert/internal/testing/plain"
	"github.com/df11-convert/df11-convert/verify/internal/cuda"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// The tests in this file need a real GPU. testdata/gpu-run.sh runs them.
//
//	DF11_GPU=1        runs them; without a GPU they fail
//	DF11_GPU_DRIVER   path of the driver's library, if the system doesn't find it
//	DF11_GPU_WEIGHTS  weights of the unit that BenchmarkHardware verifies, if memory or time is short

// hardware returns options for a real GPU. It skips the test unless someone asked for a GPU; then,
// without a GPU, the test fails.
func hardware(t testing.TB) GPUOptions {
	t.Helper()
	if os.Getenv("DF11_GPU") != "1" {
		t.Skip("NOT TESTED: needs a GPU; set DF11_GPU=1, or run testdata/gpu-run.sh")
	}
	opt := GPUOptions{Mode: GPURequire, driver: os.Getenv("DF11_GPU_DRIVER")}
	if _, err := cuda.Open(opt.driver); err != nil {
		t.Fatal("DF11_GPU=1, but:", err)
	}
	return opt
}

// TestHardwareDemanded runs the hardware tests and the benchmark without a driver. They must fail, not skip.
func TestHardwareDemanded(t *testing.T) {
	if os.Getenv("DF11_GPU") != "" || testing.Short() {
		t.Skip("runs itself without DF11_GPU only, and not in an emulator of another machine")
	}
	exe, err := os.Executable()
	must(t, err)
	run := func(names []string, flags ...string) {
		c := exec.CommandContext(t.Context(), exe, append(flags, "-test.v")...)
		c.Env = append(os.Environ(), "DF11_GPU=1", "DF11_GPU_DRIVER="+filepath.Join(t.TempDir(), "libcuda.so.1"))
		out, err := c.CombinedOutput()
		for _, name := range names {
			if err == nil || !strings.Contains(string(out), "--- FAIL: "+name) {
				t.Errorf("%s did not fail: %v\n%s", name, err, out)
			}
		}
	}
	run([]string{"TestHardwareDriver ", "TestHardwareDecode ", "TestHardwareGolden ", "TestHardwareMismatch "}, "-test.run=^TestHardware")
	run([]string{"BenchmarkHardware"}, "-test.run=^$", "-test.bench=^BenchmarkHardware$")
}

// TestHardwareDriver opens the device, loads our kernel, and logs which device it is.
func TestHardwareDriver(t *testing.T) {
	g, err := OpenGPU(hardware(t))
	if err != nil {
		t.Fatal("DF11_GPU=1, but:", err)
	}
	defer g.Close()
	t.Log("DEVICE", g.describe)
}

func (s *stored) onGPU(ctx context.Context, g *GPU, opt CompareOptions) error {
	u, err := s.open()
	if err != nil {
		return err
	}
	return g.Compare(ctx, u, bytes.NewReader(s.source), opt)
}

// gpuShapes returns units of all kinds; some have many pieces.
func gpuShapes() map[string][]byte {
	rng := rand.New(rand.NewPCG(31, 4))
	oneBit := plain.Normal(200_000, 5)
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
		"normal": plain.Normal(700_000, 9), "skewed": plain.Weights(skewed), "flat": plain.Weights(flat),
		"long codes": plain.Fibonacci(25, 3), "one-bit codes": oneBit, "two weights": plain.Normal(2, 1),
	}
}

// minSlot is room for a piece of one chunk.
const minSlot = (maxTables+1)*rowBytes + 8192 + // luts; stream, gaps, positions of a chunk
	kernel.TableBytes + 3*maxChunkElems + 7*slotAlign // tables; sign_mantissa, weights

// mustDecode compares units, in large pieces and in the smallest.
func mustDecode(t *testing.T, opt GPUOptions, units map[string]*stored) {
	t.Helper()
	for _, opt.slotSize = range []int{minSlot, 1 << 20, 64 << 20} {
		g, err := OpenGPU(opt)
		must(t, err)
		for name, u := range units {
			if err := u.onGPU(t.Context(), g, CompareOptions{}); err != nil {
				t.Errorf("%s, slots of %d bytes: %v", name, opt.slotSize, err)
			}
		}
		g.Close()
	}
}

// goldenUnits returns the golden units that DF11 can hold.
func goldenUnits(t *testing.T) map[string]*stored {
	t.Helper()
	units := map[string]*stored{}
	for _, u := range golden.Units(t) {
		if u.Sound() {
			units[u.Name] = storedUnit(u.Unit)
		}
	}
	return units
}

// TestHardwareDecode is the proof: the GPU decodes every kind of unit bit for bit.
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
		u := encode(plain.Weights(symbols))
		if _, err := u.open(); err == nil { // otherwise DF11 can't hold it
			units[fmt.Sprint("random ", i)] = u
		}
	}
	mustDecode(t, opt, units)
}

func TestHardwareGolden(t *testing.T) {
	mustDecode(t, hardware(t), goldenUnits(t))
}

// TestHardwareMismatch flips one bit of the source; it must be found at its position.
func TestHardwareMismatch(t *testing.T) {
	g, err := OpenGPU(hardware(t))
	must(t, err)
	defer g.Close()
	u := encode(plain.Normal(600_000, 11))
	for _, i := range []int{0, 1, 299_999, 599_999} {
		bad := u.clone()
		bad.source[2*i] ^= 1
		var m *MismatchError
		if err := bad.onGPU(t.Context(), g, CompareOptions{}); !errors.As(err, &m) || m.Elem != int64(i) {
			t.Errorf("bit 0 of weight %d: %v", i, err)
		}
	}
}
