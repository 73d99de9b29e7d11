//go:build linux && !nogpu

package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
	"github.com/df11-convert/df11-convert/verify/internal/cuda"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// TestGPUGolden decodes every golden unit, and units of all kinds, in large pieces and in the
// smallest.
func TestGPUGolden(t *testing.T) {
	s, units := stub(t), goldenUnits(t)
	for name, weights := range gpuShapes() {
		units[name] = encode(weights)
	}
	mustDecode(t, s.options(), units)
	if log := s.log(t); strings.Count(log, "cuDevicePrimaryCtxRelease") != 3 {
		t.Errorf("not everything was given back:\n%s", grep(log, "cuDevice"))
	}
}

// logging returns options with auto mode, and the log that OpenGPU and the GPU then write.
func (s *stubDriver) logging() (GPUOptions, *bytes.Buffer) {
	log := new(bytes.Buffer)
	opt := s.options()
	opt.Mode, opt.Log = GPUAuto, slog.New(slog.NewTextHandler(log, nil))
	return opt, log
}

// openStub opens the stub with these faults until the end of the test.
func openStub(t *testing.T, faults ...string) (*stubDriver, *GPU) {
	t.Helper()
	s := stub(t, faults...)
	return s, s.openUntilEnd(t, s.options())
}

func (s *stubDriver) openUntilEnd(t *testing.T, opt GPUOptions) *GPU {
	t.Helper()
	g := s.open(t, opt)
	t.Cleanup(func() { g.Close() })
	return g
}

func (s *stored) mustPassOn(t *testing.T, g *GPU) {
	t.Helper()
	if err := s.onGPU(t.Context(), g, CompareOptions{}); err != nil {
		t.Error(err)
	}
}

// warned checks that the log has exactly one warning, with these words.
func warned(t *testing.T, log *bytes.Buffer, words string) {
	t.Helper()
	if strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), words) {
		t.Errorf("not one warning of %q: %s", words, log)
	}
}

func grep(s, word string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if strings.Contains(line, word) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// The first of three devices doesn't work. The second is used, and Describe names it.
func TestGPUDescribe(t *testing.T) {
	s := stub(t, "devices 3", "fail cuMemAlloc 2 2")
	opt, log := s.logging()
	g := s.openUntilEnd(t, opt)
	warned(t, log, "Stub 0: ")
	kernel, device := g.Describe()
	if !strings.HasPrefix(kernel, "df11-convert, PTX 6.0, sha256 ") || device != "Stub 1, sm_75" {
		t.Errorf("described as %q, %q", kernel, device)
	}
	encode(plain.Normal(50_000, 27)).mustPassOn(t, g)
}

// Each slot must have its own stream, and tables are built once per slot and unit. The stub knows
// which luts they come from. Every launch has blocks for all places of the device, and only a few
// for each.
func TestGPUSlots(t *testing.T) {
	s := stub(t)
	opt := s.options()
	opt.slotSize = 4 << 20
	// about 60 chunks in one piece; the stub has 2 multiprocessors with 2 blocks each
	a, b := encode(plain.Normal(700_000, 25)), encode(plain.Fibonacci(20, 4))
	a.mustPassOn(t, s.openUntilEnd(t, opt))
	if want := "launch 3: 16 blocks"; !strings.Contains(s.log(t), want) {
		t.Errorf("no %q in:\n%s", want, grep(s.log(t), "launch"))
	}
	s, g := openStub(t)
	for _, unit := range []*stored{a, b, a} {
		unit.mustPassOn(t, g)
	}
	if u, err := a.open(); err != nil || len(cutPieces(u, g.opt.slotSize)) <= nSlots {
		t.Fatalf("as many slots as pieces: %v", err)
	}
	// so that no upload waits for another slot's download
	if n := strings.Count(s.log(t), "cuStreamCreate"); n != nSlots {
		t.Errorf("%d streams for %d slots", n, nSlots)
	}
	if n := strings.Count(s.log(t), "tables were built"); n < 3 || n > 3*nSlots {
		t.Errorf("tables were built %d times for 3 units and %d slots", n, nSlots)
	}
}

// TestGPUMismatch damages the source in several places. The GPU must find the first, as the CPU
// does.
func TestGPUMismatch(t *testing.T) {
	_, g := openStub(t)
	unit := encode(plain.Normal(600_000, 11))
	unit.splitAt(1000, 250_000)
	for _, at := range [][]int{{0}, {599_999}, {249_999, 250_000, 550_000}, {150_001, 599_999}} {
		bad := unit.clone()
		for _, i := range at {
			bad.source[2*i+1] ^= 0x40
		}
		opt := CompareOptions{Unit: "u", Names: []string{"a", "b", "c"}}
		want, got := new(MismatchError), new(MismatchError)
		if !errors.As(bad.compare(opt), &want) || !errors.As(bad.onGPU(t.Context(), g, opt), &got) || *got != *want {
			t.Errorf("spoiled at %v: GPU finds %v, CPU %v", at, got, want)
		}
	}
}

// A GPU that computes a piece wrongly twice contradicts the unit.
func TestGPUWrong(t *testing.T) {
	_, g := openStub(t, "flip 1 777", "flip 2 777")
	var m *MismatchError
	if err := encode(plain.Normal(100_000, 12)).onGPU(t.Context(), g, CompareOptions{}); !errors.As(err, &m) || m.Elem != 777 || m.Got != m.Want^0x10 {
		t.Errorf("a wrong bit at 777, twice: %v", err)
	}
}

// TestGPULost has a GPU that fails while several pieces are in progress. It computes a piece
// wrongly, or reports it done without computing it, and is right the second time; or a launch
// breaks its context; or a kernel never ends. The unit isn't proved, and neither is any later one.
// Nothing waits for the GPU, and its context is left as it is. The test controls the time.
func TestGPULost(t *testing.T) {
	unit := encode(plain.Normal(900_000, 15))
	for fault, words := range map[string]string{
		"flip 3 777": "only the second time right", "idle 3": "only the second time right",
		"crash 3 700": "CUDA_ERROR_ILLEGAL_ADDRESS", "hang 2": errSilent.Error(),
	} {
		s := stub(t, fault)
		opt, log := s.logging()
		opt.sleep = func(time.Duration) { runtime.Gosched() }
		g := s.open(t, opt)
		for range 2 {
			if err := unit.onGPU(t.Context(), g, CompareOptions{}); !errors.Is(err, ErrGPULost) || errors.Is(err, ErrNoGPU) || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v", fault, err)
			}
		}
		warned(t, log, "giving up the GPU")
		if g.Close(); strings.Contains(s.log(t), "cuDevicePrimaryCtxRelease") {
			t.Errorf("%s: the context was released", fault)
		}
	}
}

// TestGPUFaults makes every call fail once, while the only GPU is opened or used. After that, the
// GPU isn't used. With GPURequire the error is ErrNoGPU and names the call. With GPUAuto there is
// no GPU from the start, or the error is ErrGPULost.
func TestGPUFaults(t *testing.T) {
	unit := encode(plain.Normal(200_000, 14))
	for _, call := range []string{
		"cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
		"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadData", "cuModuleGetFunction",
		"cuFuncSetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
		"cuStreamCreate", "cuMemAlloc", "cuMemAllocHost", "cuEventCreate", "cuMemcpyHtoDAsync", "cuMemsetD8Async",
		"cuLaunchKernel", "cuMemcpyDtoHAsync", "cuEventRecord", "cuEventQuery",
	} {
		for mode, want := range map[GPUMode]error{GPURequire: ErrNoGPU, GPUAuto: ErrGPULost} {
			t.Run(call+" "+string(mode), func(t *testing.T) {
				opt := stub(t, "fail "+call+" 1 2").options()
				opt.Mode = mode
				g, err := OpenGPU(opt)
				if g == nil && err == nil && mode == GPUAuto {
					return
				}
				if err == nil {
					defer g.Close()
					err = unit.onGPU(t.Context(), g, CompareOptions{Unit: "u"})
					if again := unit.onGPU(t.Context(), g, CompareOptions{}); !errors.Is(again, want) {
						t.Errorf("the device was used again: %v", again)
					}
				}
				var e *cuda.Error
				if !errors.Is(err, want) || !errors.As(err, &e) || !strings.Contains(err.Error(), call+": CUDA_ERROR_OUT_OF_MEMORY (out of memory)") {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// TestGPUUnusable has no driver, no device, a broken one, or too little host memory to start the
// driver. Auto goes on and logs why, with a warning if there seems to be a GPU. Require fails.
func TestGPUUnusable(t *testing.T) {
	for name, c := range map[string]struct {
		fault, driver string
		host          int64
		warns         bool
		want          string
	}{
		"no driver":     {"", "/no/libcuda.so.1", 0, false, "no NVIDIA driver"},
		"no device":     {"fail cuInit 1 100", "", 0, false, "no NVIDIA driver or no device"},
		"none":          {"devices 0", "", 0, false, "no NVIDIA driver or no device"},
		"other driver":  {"fail cuInit 1 803", "", 0, true, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
		"unknown error": {"fail cuInit 1 999", "", 0, true, "cuInit: error 999"},
		"no memory":     {"fail cuMemAlloc 2 2", "", 0, true, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"},
		"old device":    {"major 6", "", 0, true, "our kernel needs compute capability 7.0, Stub 0 has 6.5"},
		"negative host": {"", "", -1, false, "the memory budget leaves"},
		"little host":   {"", "", 1, false, "the memory budget leaves"},
		"a byte less":   {"", "", leastHost - 1, false, "the memory budget leaves"},
	} {
		t.Run(name, func(t *testing.T) {
			opt, log := stub(t, c.fault).logging()
			opt.driver, opt.Host = cmp.Or(c.driver, opt.driver), c.host
			if g, err := OpenGPU(opt); g != nil || err != nil {
				t.Errorf("auto: %v, %v", g, err)
			}
			if c.warns {
				warned(t, log, c.want)
			} else if strings.Contains(log.String(), "level=WARN") || strings.Count(log.String(), "level=INFO") != 1 || !strings.Contains(log.String(), c.want) {
				t.Errorf("auto says %s", log)
			}
			s := stub(t, c.fault)
			opt.Mode = GPURequire
			if _, err := OpenGPU(opt); !errors.Is(err, ErrNoGPU) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("required: %v", err)
			}
			if c.host != 0 && s.log(t) != "" {
				t.Error("the driver was started")
			}
		})
	}
}

// If you cancel, you don't wait long for a device that hangs, and the error is your own reason.
func TestGPUHangCancelled(t *testing.T) {
	unit := encode(plain.Normal(600_000, 23))
	s := stub(t, "hang 1")
	ctx, cancel := context.WithCancelCause(t.Context())
	opt := s.options()
	var slept time.Duration
	var mu sync.Mutex
	opt.sleep = func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		slept += d
		cancel(errStop)
	}
	g := s.open(t, opt)
	if err := unit.onGPU(ctx, g, CompareOptions{}); !errors.Is(err, errStop) {
		t.Errorf("got %v", err)
	}
	if slept > nSlots*2*pieceLimit {
		t.Errorf("%v were slept", slept)
	}
	g.Close()
}

// After a cancelled comparison, or an error while reading the source, the slots still work.
func TestGPUCancel(t *testing.T) {
	unit := encode(plain.Normal(600_000, 16))
	_, g := openStub(t)
	u, err := unit.open()
	must(t, err)
	for n := range 5 {
		ctx, cancel := context.WithCancelCause(t.Context())
		src := &cancelReader{ReaderAt: bytes.NewReader(unit.source), n: n, cancel: func() { cancel(errStop) }}
		if n == 0 {
			cancel(errStop)
		}
		if err := g.Compare(ctx, u, src, CompareOptions{}); !errors.Is(err, errStop) {
			t.Errorf("cancelled at read %d: %v", n, err)
		}
		cancel(nil)
	}
	unit.mustPassOn(t, g)
	err = g.Compare(t.Context(), u, bytes.NewReader(unit.source[:900_000]), CompareOptions{})
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "read source at byte 900000") {
		t.Errorf("short source: %v", err)
	}
	unit.mustPassOn(t, g)
}

// TestGPUPressure compares several units at once while the garbage collector runs all the time.
func TestGPUPressure(t *testing.T) {
	unit := encode(plain.Normal(300_000, 18))
	_, g := openStub(t)
	ctx, stop := context.WithCancel(t.Context())
	var collector, users sync.WaitGroup
	collector.Go(func() {
		for ctx.Err() == nil {
			runtime.GC()
		}
	})
	for range 8 {
		users.Go(func() {
			for range 3 {
				unit.mustPassOn(t, g)
			}
		})
	}
	users.Wait()
	stop()
	collector.Wait()
}

// The GPU stays within any budget of host memory.
func TestGPUHost(t *testing.T) {
	unit := encode(plain.Normal(50_000, 24))
	for _, host := range []int64{0, leastHost, leastHost + 1<<20, 1 << 40} {
		opt := stub(t).options()
		opt.Host, opt.slotSize = host, 0
		g, err := OpenGPU(opt)
		must(t, err)
		if most := cmp.Or(host, 1<<40); g.Host() > min(most, contextMemory+192<<20) {
			t.Errorf("%d bytes: %d are taken", host, g.Host())
		}
		unit.mustPassOn(t, g)
		g.Close()
	}
}

// TestPieces cuts a unit at every size that makes a difference. The pieces must cover the unit and
// fit.
func TestPieces(t *testing.T) {
	u, err := encode(plain.Normal(400_000, 20)).open()
	must(t, err)
	for size := minSlot; size < 1<<21; size += 9973 {
		chunk, elem := 0, int64(0)
		for _, p := range cutPieces(u, size) {
			if p.first != chunk || p.elem != elem || p.size > size || p.nElems == 0 {
				t.Fatalf("slots of %d bytes: piece %+v", size, p)
			}
			chunk, elem = chunk+p.n, elem+int64(p.nElems)
		}
		if elem != u.nElems {
			t.Fatalf("slots of %d bytes: %d weights of %d", size, elem, u.nElems)
		}
	}
	if n := kernel.TilesShared(maxChunkElems); n > 48<<10 {
		t.Errorf("a chunk needs %d bytes of shared memory; drivers grant 48 KiB without asking", n)
	}
	if p := newPiece(u, chunkRange{0, 1}); p.size > minSlot {
		t.Errorf("a chunk needs %d bytes", p.size)
	}
}
