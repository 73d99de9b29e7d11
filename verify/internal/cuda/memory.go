package cuda

import "unsafe"

// Ptr is an address in a device's memory.
type Ptr uint64

// Alloc allocates n bytes on the device, aligned to 256. Close of the device frees them.
func (c *Context) Alloc(n int) (p Ptr, err error) {
	err = c.call("cuMemAlloc_v2", &p, n)
	return p, err
}

// Pinned is host memory that the device can reach. It isn't Go's memory: the collector ignores it,
// and the device's Close frees it.
type Pinned []byte

// AllocPinned allocates n bytes, n > 0.
func (c *Context) AllocPinned(n int) (Pinned, error) {
	var p *byte
	if err := c.call("cuMemAllocHost_v2", &p, n); err != nil {
		return nil, err
	}
	return unsafe.Slice(p, n), nil
}

// CopyToDevice copies src to dst when the stream gets there. src must not change until then.
func (c *Context) CopyToDevice(dst Ptr, src Pinned, s Stream) error {
	return c.call("cuMemcpyHtoDAsync_v2", dst, src, len(src), s)
}

// CopyToHost fills dst from src when the stream gets there.
func (c *Context) CopyToHost(dst Pinned, src Ptr, s Stream) error {
	return c.call("cuMemcpyDtoHAsync_v2", dst, src, len(dst), s)
}

// Fill sets n bytes to v when the stream gets there.
func (c *Context) Fill(dst Ptr, v byte, n int, s Stream) error {
	return c.call("cuMemsetD8Async", dst, v, n, s)
}
