package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/pflag"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/pagecache"
)

// How --memory is divided. A worker takes the buffers of encoder and verifier, and blocks read ahead from a local file.
const (
	minMemory       = 64 << 20
	outsideHeap     = 16 << 20 // the program's own pages, stacks, the runtime's tables
	sharedMemory    = 44 << 20 // everything that does not grow with the workers: outsideHeap, headers, counts, garbage
	memoryPerWorker = 9 << 20
	memoryPerUpload = 8 << 20
	transferShare   = 4 // 1/4 of the budget is for bytes that are fetched ahead
	minRange        = 1 << 20
	minSpools       = 8 << 20 // less is not worth it
	gpuShare        = 2       // 1/2 of the spools' share is for GPUs, where there are any
	piecesShare     = 8       // 1/8 is for pieces of a finished model on a Hub
	maxPieces       = 96 << 20
	containerShare  = 0.75 // of a container's limit, if no budget is set
)

// memoryShares is a budget, divided. The zero value means that there is no budget.
type memoryShares struct {
	total, heap int64
	workers     int
	spools      int64 // for pipeline.Options.SpoolMemory
	gpu         int64 // for verify.GPUOptions.Host
}

// divideMemory divides a budget; 0 is none. Workers come first, as many as the budget can hold, then uploads and
// transfers. Spools, which lie outside the heap, get three quarters of the rest; garbage and tables get the last quarter.
func divideMemory(total sizeFlag, workers, uploads int) (memoryShares, error) {
	m := memoryShares{total: int64(total), workers: workers}
	if total == 0 {
		return m, nil
	}
	if total < minMemory {
		return m, usagef("--memory %s is less than the 64MiB that are needed", total.String())
	}
	m.workers = min(workers, max(1, int((m.total-sharedMemory)/memoryPerWorker)))
	left := m.total - sharedMemory - int64(m.workers)*memoryPerWorker - int64(uploads)*memoryPerUpload
	left -= transferMemory(m.total) * 5 / 4
	if m.spools = left * 3 / 4; m.spools < minSpools {
		m.spools = -1
	}
	m.heap = m.total - outsideHeap - max(0, m.spools)
	m.gpu = max(1, m.spools/gpuShare)
	return m, nil
}

// besideGPU takes n bytes of the host's memory for GPUs from the spools, or from the heap of a command that has no spools.
func (m memoryShares) besideGPU(n int64) memoryShares {
	switch {
	case m.total == 0:
	case m.spools > 0:
		m.spools -= n
	default:
		m.heap -= n
	}
	return m
}

// limitFlags bound the cores, memory and disk of a conversion.
type limitFlags struct {
	workers, uploads int
	memory, disk     sizeFlag
}

// memoryUsage explains --memory.
const memoryUsage = "memory budget, at least 64MiB (default: three quarters of a container's limit, if there is one)"

func (f *limitFlags) register(p *pflag.FlagSet) {
	p.IntVar(&f.workers, "workers", 0, "threads for encoding and verifying (default: all cores)")
	p.IntVar(&f.uploads, "uploads", 2, "files uploaded at once")
	p.Var(&f.memory, "memory", memoryUsage)
	p.Var(&f.disk, "disk", "maximum temporary disk space, e.g. 12GB (default: what is free)")
	group(p, groupResources, "workers", "uploads", "memory", "disk")
}

// divide divides the memory budget for a conversion.
func (f *limitFlags) divide() (memoryShares, error) {
	return divideMemory(cmp.Or(f.memory, defaultMemory()), cmp.Or(f.workers, runtime.GOMAXPROCS(0)), f.uploads)
}

// divide makes the budget hold for a command without spools: fewer workers, smaller transfers, an early collector.
func (f *readerFlags) divide() (err error) {
	if f.shares, err = forReading(cmp.Or(f.memory, defaultMemory()), cmp.Or(f.workers, runtime.GOMAXPROCS(0))); err != nil {
		return err
	}
	f.shares.apply()
	f.budget = max(0, f.shares.total-minMemory/2) / 2 // there may be two clients
	return nil
}

// forReading divides a budget for a command without spools: the heap gets their share.
func forReading(total sizeFlag, workers int) (memoryShares, error) {
	m, err := divideMemory(total, workers, 0)
	m.heap += max(0, m.spools)
	m.spools = -1
	return m, err
}

// pieceMemory is the budget's share for pieces of a finished model on a Hub; 0, without a budget, means the default.
func pieceMemory(memory int64) int64 { return min(memory/piecesShare, maxPieces) }

// garbagePercent is the garbage that may pile up, in percent of the live heap. The heap is mostly buffers, which the
// collector need not look into, so that it may run often.
const garbagePercent = 25

// apply makes the garbage collector keep the heap's share.
func (m memoryShares) apply() {
	if m.total > 0 {
		debug.SetMemoryLimit(m.heap)
		debug.SetGCPercent(garbagePercent)
	}
}

// transferBuffers divides a budget over the ranges that are fetched ahead. Without a budget they have the client's own sizes.
func transferBuffers(memory int64, connections int) (rangeBytes, bufferBytes int64) {
	n := hub.RangesAhead(connections)
	if memory == 0 {
		return hub.DefaultRangeBytes, n * hub.DefaultRangeBytes
	}
	bufferBytes = transferMemory(memory)
	rangeBytes = min(max(bufferBytes/n, minRange), hub.DefaultRangeBytes)
	return rangeBytes, max(bufferBytes, rangeBytes)
}

// transferMemory is the budget's share for bytes that are fetched ahead. More than what the client takes by itself is not faster.
func transferMemory(memory int64) int64 {
	return min(memory/transferShare, hub.RangesAhead(0)*hub.DefaultRangeBytes)
}

// defaultMemory is the budget where none is given: a share of the container's limit, or none.
func defaultMemory() sizeFlag {
	limit := containerMemory()
	if limit == 0 {
		return 0
	}
	return sizeFlag(max(minMemory, int64(containerShare*float64(limit))))
}

// containerMemory is the memory limit of the control groups of this process; 0 if there is none or it cannot be read.
func containerMemory() int64 {
	limit, err := memlimit.FromCgroup()
	if err != nil {
		return 0
	}
	return int64(min(limit, maxSize))
}

// exceedsCache tells whether n bytes of files are more than half of the memory of the container or the machine: more than
// the system can keep in memory beside other things.
func exceedsCache(n int64) bool {
	memory := cmp.Or(containerMemory(), pagecache.Memory())
	return memory > 0 && n > memory/2
}
