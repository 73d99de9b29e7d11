package cuda

// Function is an entry point of a loaded PTX text.
type Function uintptr

// Load compiles a PTX text and returns its entry points with these names.
func (c *Context) Load(ptx string, names ...string) ([]Function, error) {
	var module uintptr
	if err := c.call("cuModuleLoadData", &module, cString(ptx)); err != nil {
		return nil, err
	}
	list := make([]Function, len(names))
	for i, name := range names {
		if err := c.call("cuModuleGetFunction", &list[i], module, cString(name)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// PreferShared makes multiprocessors give a function as much shared memory as they can, at the cost
// of their L1 cache.
func (c *Context) PreferShared(f Function) error {
	// the percentage that shared memory gets of the memory it shares with the L1 cache
	const functionCarveout = 9
	return c.call("cuFuncSetAttribute", f, functionCarveout, 100)
}

// Resident returns how many blocks of a function the device holds at once, at least 1. Each block
// has nThreads threads and nShared bytes of dynamic shared memory.
func (c *Context) Resident(f Function, nThreads, nShared int) (int, error) {
	var n int32
	err := c.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &n, f, nThreads, nShared)
	return max(1, int(n)) * c.info.Processors, err
}

// Launch holds how to start a function, in one dimension.
type Launch struct {
	Blocks, Threads int
	NShared         int // bytes of dynamic shared memory, at most 48 KiB
	Stream          Stream
}

// Launch enqueues a function in a stream. args are its parameters, each in the low bytes of a word,
// where a little-endian machine reads shorter parameters. Launch copies them before it returns.
func (c *Context) Launch(f Function, l Launch, args ...uint64) error {
	pointers := make([]*uint64, len(args))
	for i := range args {
		pointers[i] = &args[i]
	}
	return c.call("cuLaunchKernel", f, l.Blocks, 1, 1, l.Threads, 1, 1, l.NShared, l.Stream,
		pointers, 0)
}
