package cuda

import "unsafe"

// api are the driver's functions. Sizes are size_t, handles are pointers that only the driver follows,
// device addresses have 64 bits everywhere. Every function is present once an api is.
type api struct {
	init              func(flags uint32) int32
	driverVersion     func(v *int32) int32
	errorName         func(code int32, s **byte) int32
	errorText         func(code int32, s **byte) int32
	deviceCount       func(n *int32) int32
	deviceGet         func(dev *int32, ordinal int32) int32
	deviceName        func(name *byte, n, dev int32) int32
	deviceAttribute   func(v *int32, attribute, dev int32) int32
	contextRetain     func(ctx *uintptr, dev int32) int32
	contextRelease    func(dev int32) int32
	contextSet        func(ctx uintptr) int32
	moduleLoad        func(m *uintptr, image *byte, nOptions uint32, options *int32, values *uintptr) int32
	moduleUnload      func(m uintptr) int32
	moduleFunction    func(f *uintptr, m uintptr, name *byte) int32
	functionGet       func(v *int32, attribute int32, f uintptr) int32
	functionSet       func(f uintptr, attribute, v int32) int32
	memInfo           func(free, total *uintptr) int32
	memAlloc          func(p *uint64, n uintptr) int32
	memFree           func(p uint64) int32
	memAllocHost      func(p *unsafe.Pointer, n uintptr) int32
	memFreeHost       func(p unsafe.Pointer) int32
	copyToDevice      func(dst uint64, src unsafe.Pointer, n, stream uintptr) int32
	copyToHost        func(dst unsafe.Pointer, src uint64, n, stream uintptr) int32
	copyOnDevice      func(dst, src uint64, n, stream uintptr) int32
	fill              func(dst uint64, v uint8, n, stream uintptr) int32
	streamCreate      func(s *uintptr, flags uint32) int32
	streamSynchronize func(s uintptr) int32
	streamDestroy     func(s uintptr) int32
	eventCreate       func(e *uintptr, flags uint32) int32
	eventRecord       func(e, stream uintptr) int32
	eventQuery        func(e uintptr) int32
	eventElapsed      func(ms *float32, from, to uintptr) int32
	eventDestroy      func(e uintptr) int32
	launch            func(f uintptr, gridX, gridY, gridZ, blockX, blockY, blockZ, nShared uint32, stream uintptr, args, extra *unsafe.Pointer) int32
}

// symbol is a function of the library and the field of an api that it goes to.
type symbol struct {
	name string
	to   any // pointer to a func
}

// symbols has the names in the library. Where the manual's name stands for a newer version with _v2,
// the plain symbol is one from before 64-bit devices.
func (a *api) symbols() []symbol {
	return []symbol{
		{"cuInit", &a.init},
		{"cuDriverGetVersion", &a.driverVersion},
		{"cuGetErrorName", &a.errorName},
		{"cuGetErrorString", &a.errorText},
		{"cuDeviceGetCount", &a.deviceCount},
		{"cuDeviceGet", &a.deviceGet},
		{"cuDeviceGetName", &a.deviceName},
		{"cuDeviceGetAttribute", &a.deviceAttribute},
		{"cuDevicePrimaryCtxRetain", &a.contextRetain},
		{"cuDevicePrimaryCtxRelease_v2", &a.contextRelease},
		{"cuCtxSetCurrent", &a.contextSet},
		{"cuModuleLoadDataEx", &a.moduleLoad},
		{"cuModuleUnload", &a.moduleUnload},
		{"cuModuleGetFunction", &a.moduleFunction},
		{"cuFuncGetAttribute", &a.functionGet},
		{"cuFuncSetAttribute", &a.functionSet},
		{"cuMemGetInfo_v2", &a.memInfo},
		{"cuMemAlloc_v2", &a.memAlloc},
		{"cuMemFree_v2", &a.memFree},
		{"cuMemAllocHost_v2", &a.memAllocHost},
		{"cuMemFreeHost", &a.memFreeHost},
		{"cuMemcpyHtoDAsync_v2", &a.copyToDevice},
		{"cuMemcpyDtoHAsync_v2", &a.copyToHost},
		{"cuMemcpyDtoDAsync_v2", &a.copyOnDevice},
		{"cuMemsetD8Async", &a.fill},
		{"cuStreamCreate", &a.streamCreate},
		{"cuStreamSynchronize", &a.streamSynchronize},
		{"cuStreamDestroy_v2", &a.streamDestroy},
		{"cuEventCreate", &a.eventCreate},
		{"cuEventRecord", &a.eventRecord},
		{"cuEventQuery", &a.eventQuery},
		{"cuEventElapsedTime", &a.eventElapsed},
		{"cuEventDestroy_v2", &a.eventDestroy},
		{"cuLaunchKernel", &a.launch},
	}
}

// check makes an error of a result that is not success. call is the manual's name.
func (a *api) check(call string, code int32) error {
	if code == codeSuccess {
		return nil
	}
	e := &Error{Call: call, Code: int(code)}
	var name, text *byte
	if a.errorName(code, &name) == codeSuccess && a.errorText(code, &text) == codeSuccess {
		e.Name, e.Text = goString(name), goString(text)
	}
	return e
}

// goString copies a C string. nil is empty.
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

// cString gives a string the zero byte that C wants.
func cString(s string) *byte {
	b := append([]byte(s), 0)
	return &b[0]
}
