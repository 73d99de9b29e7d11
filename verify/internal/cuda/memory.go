package cuda

import "unsafe"

// Ptr is an address in a device's memory.
type Ptr uint64

// Alloc allocates n bytes on the device, aligned to 256. Close of the device frees them.
func (c *Context) Alloc(n int) (Ptr, error) {
	var p uint64
	err := c.api.check("cuMemAlloc", c.api.MemAlloc(&p, uintptr(n)))
	return Ptr(p), err
}

// Pinned is host memory that the device can reach. It isn't Go's memory: the collector ignores it,
// and the device's Close frees it.
type Pinned []byte

// AllocPinned allocates n bytes, n > 0.
func (c *Context) AllocPinned(n int) (Pinned, error) {
	var p unsafe.Pointer
	if err := c.api.check("cuMemAllocHost", c.api.MemAllocHost(&p, uintptr(n))); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// CopyToDevice copies src to dst when the stream gets there. src must not change until then.
func (c *Context) CopyToDevice(dst Ptr, src Pinned, s Stream) error {
	if len(src) == 0 {
		return nil
	}
	return c.api.check("cuMemcpyHtoDAsync",
		c.api.CopyToDevice(uint64(dst), unsafe.Pointer(&src[0]), uintptr(len(src)), uintptr(s)))
}

// CopyToHost fills dst from src when the stream gets there.
func (c *Context) CopyToHost(dst Pinned, src Ptr, s Stream) error {
	if len(dst) == 0 {
		return nil
	}
	return c.api.check("cuMemcpyDtoHAsync",
		c.api.CopyToHost(unsafe.Pointer(&dst[0]), uint64(src), uintptr(len(dst)), uintptr(s)))
}

// CopyOnDevice copies n bytes within the device's memory when the stream gets there.
func (c *Context) CopyOnDevice(dst, src Ptr, n int, s Stream) error {
	return c.api.check("cuMemcpyDtoDAsync",
		c.api.CopyOnDevice(uint64(dst), uint64(src), uintptr(n), uintptr(s)))
}

// Fill sets n bytes to v when the stream gets there.
func (c *Context) Fill(dst Ptr, v byte, n int, s Stream) error {
	return c.api.check("cuMemsetD8Async", c.api.Fill(uint64(dst), v, uintptr(n), uintptr(s)))
}
