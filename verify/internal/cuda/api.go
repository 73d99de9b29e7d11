package cuda

import "unsafe"

// api holds the driver's functions, each with its name in the library. Sizes are size_t, handles
// are pointers that only the driver follows, and device addresses always have 64 bits. Once load
// returns an api, every function is present. Where a symbol ends in _v2, the manual uses its name
// without the suffix; in the library that name is a function from before 64-bit devices.
type api struct {
	devices
	kernels
	memory
	streams
}

// devices are the functions that find and open a GPU.
type devices struct {
	Init          func(flags uint32) int32         `symbol:"cuInit"`
	DriverVersion func(v *int32) int32             `symbol:"cuDriverGetVersion"`
	ErrorName     func(code int32, s **byte) int32 `symbol:"cuGetErrorName"`
	ErrorText     func(code int32, s **byte) int32 `symbol:"cuGetErrorString"`

	DeviceCount     func(n *int32) int32                       `symbol:"cuDeviceGetCount"`
	DeviceGet       func(dev *int32, ordinal int32) int32      `symbol:"cuDeviceGet"`
	DeviceName      func(name *byte, n, dev int32) int32       `symbol:"cuDeviceGetName"`
	DeviceAttribute func(v *int32, attribute, dev int32) int32 `symbol:"cuDeviceGetAttribute"`

	ContextRetain  func(ctx *uintptr, dev int32) int32 `symbol:"cuDevicePrimaryCtxRetain"`
	ContextRelease func(dev int32) int32               `symbol:"cuDevicePrimaryCtxRelease_v2"`
	ContextSet     func(ctx uintptr) int32             `symbol:"cuCtxSetCurrent"`
}

// kernels are the functions that load and start a kernel.
type kernels struct {
	ModuleLoad     func(m *uintptr, image *byte) int32           `symbol:"cuModuleLoadData"`
	ModuleFunction func(f *uintptr, m uintptr, name *byte) int32 `symbol:"cuModuleGetFunction"`

	FunctionSet func(f uintptr, attribute, v int32) int32 `symbol:"cuFuncSetAttribute"`

	MaxActiveBlocks func(n *int32, f uintptr, nThreads int32,
		nShared uintptr) int32 `symbol:"cuOccupancyMaxActiveBlocksPerMultiprocessor"`

	Launch func(
		f uintptr, gridX, gridY, gridZ, blockX, blockY, blockZ, nShared uint32, stream uintptr,
		args, extra *unsafe.Pointer,
	) int32 `symbol:"cuLaunchKernel"`
}

// memory are the functions that allocate, copy, and fill memory.
type memory struct {
	MemAlloc     func(p *uint64, n uintptr) int32         `symbol:"cuMemAlloc_v2"`
	MemAllocHost func(p *unsafe.Pointer, n uintptr) int32 `symbol:"cuMemAllocHost_v2"`

	CopyToDevice func(dst uint64, src unsafe.Pointer,
		n, stream uintptr) int32 `symbol:"cuMemcpyHtoDAsync_v2"`
	CopyToHost func(dst unsafe.Pointer, src uint64,
		n, stream uintptr) int32 `symbol:"cuMemcpyDtoHAsync_v2"`
	CopyOnDevice func(dst, src uint64, n,
		stream uintptr) int32 `symbol:"cuMemcpyDtoDAsync_v2"`
	Fill func(dst uint64, v uint8, n,
		stream uintptr) int32 `symbol:"cuMemsetD8Async"`
}

// streams are the functions that order work and report its progress.
type streams struct {
	StreamCreate func(s *uintptr, flags uint32) int32 `symbol:"cuStreamCreate"`

	EventCreate func(e *uintptr, flags uint32) int32 `symbol:"cuEventCreate"`
	EventRecord func(e, stream uintptr) int32        `symbol:"cuEventRecord"`
	EventQuery  func(e uintptr) int32                `symbol:"cuEventQuery"`
}

// check returns an error unless code means success. call is the function's name in the manual.
func (a *api) check(call string, code int32) error {
	if code == codeSuccess {
		return nil
	}
	e := &Error{Call: call, Code: int(code)}
	var name, text *byte
	if a.ErrorName(code, &name) == codeSuccess && a.ErrorText(code, &text) == codeSuccess {
		e.Name, e.Text = goString(name), goString(text)
	}
	return e
}

// goString copies a C string. For nil it returns "".
func goString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// cString returns s with the zero byte that C needs.
func cString(s string) *byte {
	b := append([]byte(s), 0)
	return &b[0]
}
