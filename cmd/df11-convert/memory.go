package main

import "runtime/debug"

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
	bufferBytes = memory / transferShare
	rangeBytes = min(max(bufferBytes/int64(connections), minRange), maxRange)
	return rangeBytes, max(bufferBytes, rangeBytes)
}
