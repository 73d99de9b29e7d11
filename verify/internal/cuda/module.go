package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"
)

// Module is a loaded PTX text.
type Module struct{ handle uintptr }

// Options of cuModuleLoadDataEx: a buffer for the compiler's errors.
const (
	optionErrorLog     = 5
	optionErrorLogSize = 6
	logSize            = 8192
)

// LoadModule compiles a PTX text. An *Error carries the messages of the driver's compiler.
func (c *Context) LoadModule(ptx string) (*Module, error) {
	log := make([]byte, logSize)
	options := []int32{optionErrorLog, optionErrorLogSize}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&log[0])
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), logSize}
	m := new(Module)
	code := c.api.ModuleLoad(&m.handle, cString(ptx), uint32(len(options)), &options[0], &values[0])
	err := c.api.check("cuModuleLoadDataEx", code)
	if e, ok := errors.AsType[*Error](err); ok {
		text, _, _ := bytes.Cut(log, []byte{0})
		e.Log = strings.Join(strings.Fields(string(text)), " ")
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// UnloadModule frees a module and its functions.
func (c *Context) UnloadModule(m *Module) error {
	return c.api.check("cuModuleUnload", c.api.ModuleUnload(m.handle))
}

// Function is an entry point of a module.
type Function struct {
	name    string
	handle  uintptr
	nStatic int // bytes of shared memory that it has by itself
	nShared int // bytes of shared memory that a launch may give it
}

// Attributes of a function.
const (
	functionStaticShared = 1
	functionMaxDynamic   = 8
	functionCarveout     = 9 // of what a multiprocessor has for L1 cache and shared memory, the share of the latter, in percent
)

// Function finds an entry point by its name.
func (c *Context) Function(m *Module, name string) (*Function, error) {
	f := &Function{name: name}
	if err := c.api.check("cuModuleGetFunction", c.api.ModuleFunction(&f.handle, m.handle, cString(name))); err != nil {
		return nil, fmt.Errorf("entry %s: %w", name, err)
	}
	var n int32
	if err := c.api.check("cuFuncGetAttribute", c.api.FunctionGet(&n, functionStaticShared, f.handle)); err != nil {
		return nil, fmt.Errorf("entry %s: %w", name, err)
	}
	f.nStatic = int(n)
	f.nShared = c.info.MaxShared - f.nStatic
	return f, nil
}

// allowShared lets a launch have n bytes of shared memory, within the device's limit. The driver must be told above 48 KiB.
func (c *Context) allowShared(f *Function, n int) error {
	if n <= f.nShared {
		return nil
	}
	if limit := c.info.MaxSharedOptIn - f.nStatic; n > limit {
		return fmt.Errorf("entry %s needs %d bytes of shared memory, %s has %d", f.name, n, c.info.Name, max(limit, 0))
	}
	if err := c.api.check("cuFuncSetAttribute", c.api.FunctionSet(f.handle, functionMaxDynamic, int32(n))); err != nil {
		return fmt.Errorf("entry %s, %d bytes of shared memory: %w", f.name, n, err)
	}
	f.nShared = n
	return nil
}

// PreferShared has multiprocessors give a function all the shared memory they can, at the cost of their L1 cache.
func (c *Context) PreferShared(f *Function) error {
	if err := c.api.check("cuFuncSetAttribute", c.api.FunctionSet(f.handle, functionCarveout, 100)); err != nil {
		return fmt.Errorf("entry %s: %w", f.name, err)
	}
	return nil
}

// Resident is how many blocks the device holds at once of a function, each of so many threads and bytes of dynamic shared
// memory: at least 1.
func (c *Context) Resident(f *Function, nThreads, nShared int) (int, error) {
	if err := c.allowShared(f, nShared); err != nil {
		return 0, err
	}
	var n int32
	if err := c.api.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", c.api.MaxActiveBlocks(&n, f.handle, int32(nThreads), uintptr(nShared))); err != nil {
		return 0, fmt.Errorf("entry %s: %w", f.name, err)
	}
	return max(1, int(n)) * c.info.Processors, nil
}

// Launch is how a function is started: in one dimension.
type Launch struct {
	Blocks, Threads int
	NShared         int // bytes of dynamic shared memory
	Stream          Stream
}

// Launch puts a function into a stream. args are its parameters, each in the low bytes of a word, where a little-endian
// machine reads shorter parameters; they are copied before Launch returns.
func (c *Context) Launch(f *Function, l Launch, args ...uint64) error {
	if l.Blocks < 1 || l.Blocks > min(c.info.MaxGrid, math.MaxInt32) {
		return fmt.Errorf("entry %s: %d blocks, %s takes 1 to %d", f.name, l.Blocks, c.info.Name, c.info.MaxGrid)
	}
	if err := c.allowShared(f, l.NShared); err != nil {
		return err
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	values := append(make([]uint64, 0, len(args)+1), args...)[:len(args)+1] // never empty
	pointers := make([]unsafe.Pointer, len(values))
	pin.Pin(&values[0])
	for i := range values {
		pointers[i] = unsafe.Pointer(&values[i])
	}
	pin.Pin(&pointers[0])
	code := c.api.Launch(f.handle, uint32(l.Blocks), 1, 1, uint32(l.Threads), 1, 1, uint32(l.NShared), uintptr(l.Stream), &pointers[0], nil)
	if err := c.api.check("cuLaunchKernel", code); err != nil {
		return fmt.Errorf("entry %s: %w", f.name, err)
	}
	return nil
}
