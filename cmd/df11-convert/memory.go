package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// How --memory is divided. What a worker takes are the buffers of encoder and verifier, and the blocks that are read
// ahead of it from a local file.
const (
	minMemory       = 64 << 20
	outsideHeap     = 16 << 20 // the program's own pages, stacks, the runtime's tables
	sharedMemory    = 44 << 20 // all that does not grow with the workers: outsideHeap, headers, counts, garbage
	memoryPerWorker = 9 << 20
	transferShare   = 4 // 1/4 of the budget is for what is fetched ahead
	minRange        = 1 << 20
	maxRange        = 16 << 20
	maxTransfer     = 512 << 20 // more is not faster
	containerShare  = 0.75      // of a container's limit, where nobody sets a budget
	defaultConns    = 8
)

// limitMemory makes the budget known to the garbage collector and reduces the workers to what it can hold.
func (f *convertFlags) limitMemory(workers int) (allowed int, err error) {
	m := int64(f.memory)
	if m == 0 {
		return workers, nil
	}
	if m < minMemory {
		return 0, usagef("--memory %s is less than the 64MiB that a conversion needs", f.memory.String())
	}
	debug.SetMemoryLimit(m - outsideHeap)
	return min(workers, max(1, int((m-sharedMemory)/memoryPerWorker))), nil
}

// transferBuffers divides a budget over the ranges that are fetched ahead. Without a budget the client's own sizes hold.
func transferBuffers(memory int64, connections int) (rangeBytes, bufferBytes int64) {
	if memory == 0 {
		return 0, 0
	}
	if connections == 0 {
		connections = defaultConns
	}
	bufferBytes = min(memory/transferShare, maxTransfer)
	rangeBytes = min(max(bufferBytes/int64(connections), minRange), maxRange)
	return rangeBytes, max(bufferBytes, rangeBytes)
}

// defaultMemory is the budget where none is given: a share of the container's limit, or none.
func defaultMemory() sizeFlag {
	limit := containerMemory(cgroupFiles)
	if limit == 0 {
		return 0
	}
	return sizeFlag(max(minMemory, int64(containerShare*float64(limit))))
}

// cgroupFiles are where Linux tells a container's memory limit: version 2 of its interface, then version 1.
var cgroupFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// containerMemory is the limit that the first of the files holds; 0 if there is none.
func containerMemory(files []string) int64 {
	const unlimited = 1 << 60 // version 1 writes a huge number where there is no limit
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err == nil && n > 0 && n < unlimited {
			return n
		}
	}
	return 0
}
