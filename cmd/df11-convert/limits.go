package main

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/verify"
)

// limitFlags bound the cores and the memory of a command.
type limitFlags struct {
	workers int
	memory  sizeFlag
}

func (f *limitFlags) register(p *pflag.FlagSet) {
	p.IntVar(&f.workers, "workers", 0, "threads that work at once (default: all cores)")
	p.Var(&f.memory, "memory",
		"memory budget, at least 64MiB (default: three quarters of a container's limit, if there is one)")
}

// divide divides the memory budget as a command of this kind does.
func (f *limitFlags) divide(kind func(total int64, workers int) budget.Memory) (budget.Memory,
	error) {
	memory := cmp.Or(f.memory, defaultMemory())
	if memory > 0 && memory < budget.LeastMemory {
		return budget.Memory{}, usagef("--memory %s is less than the 64MiB that are needed",
			memory.String())
	}
	return kind(int64(memory), cmp.Or(f.workers, runtime.GOMAXPROCS(0))), nil
}

// garbagePercent is the garbage that may pile up, in percent of the live heap. The heap is mostly
// buffers, which the collector need not look into, so that it may run often.
const garbagePercent = 25

// applyMemory makes the garbage collector keep the heap's share.
func applyMemory(m budget.Memory) {
	if m.Budget > 0 {
		debug.SetMemoryLimit(m.Heap)
		debug.SetGCPercent(garbagePercent)
	}
}

// containerShare is the share of a container's limit that is used if no budget is set.
const containerShare = 0.75

// defaultMemory is the budget where none is given: a share of the container's limit, or none.
func defaultMemory() sizeFlag {
	limit := containerMemory()
	if limit == 0 {
		return 0
	}
	return sizeFlag(max(budget.LeastMemory, int64(containerShare*float64(limit))))
}

// containerMemory is the memory limit of the control groups of this process; 0 if there is none or
// it cannot be read.
func containerMemory() int64 {
	limit, err := memlimit.FromCgroup()
	if err != nil {
		return 0
	}
	return int64(min(limit, maxSize))
}

// gpuFlags choose the second decoder.
type gpuFlags struct {
	mode string
	gpu  *verify.GPU // set by open
}

func (f *gpuFlags) register(p *pflag.FlagSet) {
	p.StringVar(&f.mode, "gpu", "auto",
		"`when` to decode on the GPU too: auto (if there is one), require, or off")
}

// open starts the GPU verifier, which takes host memory from the other parts; nil if no GPU is
// there and none is required.
func (f *gpuFlags) open(u *ui, memory *budget.Memory) (forward.GPU, error) {
	g, err := verify.OpenGPU(verify.GPUOptions{Mode: verify.GPUMode(f.mode), Host: memory.GPU,
		Log: u.log()})
	if errors.Is(err, verify.ErrNoGPU) {
		return nil, hinted{err, "the CPU check needs no GPU: leave --gpu at auto, or set it to off"}
	}
	if err != nil || g == nil {
		return nil, err
	}
	f.gpu = g
	*memory = memory.BesideGPU(g.Host())
	return g, nil
}

func (f *gpuFlags) close() {
	if f.gpu != nil {
		f.gpu.Close()
	}
}

// maxSize is more than any disk holds, and small enough that sums of sizes stay inside int64.
const maxSize = 1 << 60

// sizeFlag is a number of bytes as a flag: 512MiB, 14GB, 1.5g; "/s" may follow.
type sizeFlag int64

func (s *sizeFlag) Set(text string) error {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n < 1000 {
		return fmt.Errorf("%q has no unit: write %[1]sGB, %[1]sMiB, or %[1]sB for bytes", text)
	}
	n, err := humanize.ParseBigBytes(strings.TrimSuffix(text, "/s")) // exact: 2.01kB are 2010 bytes
	if err != nil || !n.IsInt64() || n.Int64() > maxSize {
		return fmt.Errorf("%q is not a size such as 512MiB or 14GB", text)
	}
	*s = sizeFlag(n.Int64())
	return nil
}

func (s *sizeFlag) String() string {
	if *s <= 0 {
		return ""
	}
	return human.Bytes(int64(*s))
}

func (s *sizeFlag) Type() string { return "size" }
