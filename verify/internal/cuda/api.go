package cuda

import (
	"reflect"
	"runtime"
	"strings"
	"unsafe"
)

// symbols are the functions of the driver that this package calls, by their names in the library.
// Where a symbol ends in _v2, the manual uses its name without the suffix; in the library that name
// is a function from before 64-bit devices.
var symbols = [...]string{
	"cuInit", "cuGetErrorName", "cuGetErrorString",

	"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
	"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent",

	"cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute",
	"cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuLaunchKernel",

	"cuMemAlloc_v2", "cuMemAllocHost_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
	"cuMemsetD8Async",

	"cuStreamCreate", "cuEventCreate", "cuEventRecord", "cuEventQuery",
}

// api has the addresses of all symbols.
type api map[string]uintptr

// call calls a function and returns an error unless its result is success.
func (a api) call(symbol string, args ...any) error {
	return a.check(symbol, a.result(symbol, args...))
}

// result calls a function and returns its result. An argument is a number, which goes to C as one
// word, or a pointer or slice, whose memory stays in place until the function returns.
func (a api) result(symbol string, args ...any) int32 {
	words := make([]uintptr, len(args))
	for i, arg := range args {
		switch v := reflect.ValueOf(arg); {
		case v.CanInt():
			words[i] = uintptr(v.Int())
		case v.CanUint():
			words[i] = uintptr(v.Uint())
		default:
			words[i] = v.Pointer() // which moves the memory to the heap
		}
	}
	code := callAt(a[symbol], words)
	runtime.KeepAlive(args)
	return int32(code)
}

// check returns an error unless code means success.
func (a api) check(symbol string, code int32) error {
	if code == codeSuccess {
		return nil
	}
	e := &Error{Call: strings.TrimSuffix(symbol, "_v2"), Code: int(code)}
	var name, text *byte
	if a.result("cuGetErrorName", code, &name) == codeSuccess &&
		a.result("cuGetErrorString", code, &text) == codeSuccess {
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
