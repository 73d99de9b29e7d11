package cuda

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Module is a loaded PTX text.
type Module struct{ handle uintptr }

// LoadModule compiles a PTX text.
func (c *Context) LoadModule(ptx string) (*Module, error) {
	m := new(Module)
	if err := c.api.check("cuModuleLoadData",
		c.api.ModuleLoad(&m.handle, cString(ptx))); err != nil {
		return nil, err
	}
	return m, nil
}

// Function is an entry point of a module.
type Function struct {
	name   string
	handle uintptr
}

// Function finds an entry point by its name.
func (c *Context) Function(m *Module, name string) (*Function, error) {
	f := &Function{name: name}
	if err := c.api.check("cuModuleGetFunction",
		c.api.ModuleFunction(&f.handle, m.handle, cString(name))); err != nil {
		return nil, fmt.Errorf("entry %s: %w", name, err)
	}
	return f, nil
}

// PreferShared makes multiprocessors give a function as much shared memory as they can, at the cost
// of their L1 cache.
func (c *Context) PreferShared(f *Function) error {
	// the percentage that shared memory gets of the memory it shares with the L1 cache
	const functionCarveout = 9
	if err := c.api.check("cuFuncSetAttribute",
		c.api.FunctionSet(f.handle, functionCarveout, 100)); err != nil {
		return fmt.Errorf("entry %s: %w", f.name, err)
	}
	return nil
}

// Resident returns how many blocks of a function the device holds at once, at least 1. Each block
// has nThreads threads and nShared bytes of dynamic shared memory.
func (c *Context) Resident(f *Function, nThreads, nShared int) (int, error) {
	var n int32
	if err := c.api.check("cuOccupancyMaxActiveBlocksPerMultiprocessor",
		c.api.MaxActiveBlocks(&n, f.handle, int32(nThreads), uintptr(nShared))); err != nil {
		return 0, fmt.Errorf("entry %s: %w", f.name, err)
	}
	return max(1, int(n)) * c.info.Processors, nil
}

// Launch holds how to start a function, in one dimension.
type Launch struct {
	Blocks, Threads int
	NShared         int // bytes of dynamic shared memory, at most 48 KiB
	Stream          Stream
}

// Launch enqueues a function in a stream. args are its parameters, each in the low bytes of a word,
// where a little-endian machine reads shorter parameters. Launch copies them before it returns.
func (c *Context) Launch(f *Function, l Launch, args ...uint64) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	values := append(make([]uint64, 0, len(args)+1), args...)[:len(args)+1] // never empty
	pointers := make([]unsafe.Pointer, len(values))
	pin.Pin(&values[0])
	for i := range values {
		pointers[i] = unsafe.Pointer(&values[i])
	}
	pin.Pin(&pointers[0])
	code := c.api.Launch(f.handle, uint32(l.Blocks), 1, 1, uint32(l.Threads), 1, 1,
		uint32(l.NShared), uintptr(l.Stream), &pointers[0], nil)
	if err := c.api.check("cuLaunchKernel", code); err != nil {
		return fmt.Errorf("entry %s: %w", f.name, err)
	}
	return nil
}
