package cuda

import (
	"fmt"
	"runtime"
	"sync"
)

// Info is what is known of a device.
type Info struct {
	Name           string
	Major, Minor   int // compute capability
	Processors     int // multiprocessors
	MaxShared      int // bytes of shared memory of a block, without asking
	MaxSharedOptIn int // bytes of shared memory of a block, if asked for
	MaxGrid        int // blocks
}

// Attributes of a device, by their numbers in the driver's interface.
const (
	attributeMaxGrid        = 5
	attributeMaxShared      = 8
	attributeProcessors     = 16
	attributeMajor          = 75
	attributeMinor          = 76
	attributeMaxSharedOptIn = 97
)

// Device is one GPU with its primary context. Its methods may be called by any goroutine.
type Device struct {
	api     *api
	ordinal int32
	info    Info
	work    chan func(*Context)
	done    chan struct{} // closed when the goroutine has ended

	closing sync.Once
	closed  chan struct{}
}

// Context is a device's context on its own thread. It is valid inside Device.Do only.
type Context struct {
	api    *api
	info   *Info
	device int32
	handle uintptr
}

// OpenDevice makes the context of device i and the goroutine that owns it. Close ends both.
func (d *Driver) OpenDevice(i int) (*Device, error) {
	dev := &Device{api: d.api, ordinal: int32(i)}
	dev.work, dev.done, dev.closed = make(chan func(*Context)), make(chan struct{}), make(chan struct{})
	ready := make(chan error)
	go dev.run(ready)
	if err := <-ready; err != nil {
		<-dev.done
		return nil, fmt.Errorf("device %d: %w", i, err)
	}
	return dev, nil
}

// Info tells about the device.
func (d *Device) Info() Info { return d.info }

// run is the device's goroutine. It keeps its thread to the end, and the thread ends with it, so that
// no other goroutine gets one with a context on it.
func (d *Device) run(ready chan<- error) {
	defer close(d.done)
	runtime.LockOSThread()
	c := &Context{api: d.api, info: &d.info}
	if err := c.open(d); err != nil {
		ready <- err
		return
	}
	defer c.close()
	ready <- nil
	for {
		select {
		case f := <-d.work:
			f(c)
		case <-d.closed:
			return
		}
	}
}

// Do runs f on the device's thread and returns its error. Closures run one after the other, so they
// should be short: one that waits keeps all others waiting.
func (d *Device) Do(f func(c *Context) error) error {
	var err error
	ran := make(chan struct{})
	work := func(c *Context) {
		defer close(ran)
		err = f(c)
	}
	select {
	case d.work <- work:
		<-ran
		return err
	case <-d.closed:
		return ErrClosed
	}
}

// Close gives the context back, and with it all that was allocated. It waits for a closure that is
// running.
func (d *Device) Close() {
	d.closing.Do(func() { close(d.closed) })
	<-d.done
}

func (c *Context) open(d *Device) error {
	if err := c.api.check("cuDeviceGet", c.api.deviceGet(&c.device, d.ordinal)); err != nil {
		return err
	}
	if err := c.readInfo(&d.info); err != nil {
		return err
	}
	if err := c.api.check("cuDevicePrimaryCtxRetain", c.api.contextRetain(&c.handle, c.device)); err != nil {
		return err
	}
	if err := c.api.check("cuCtxSetCurrent", c.api.contextSet(c.handle)); err != nil {
		c.close()
		return err
	}
	return nil
}

// close ignores results: after a fault on the device every call returns that fault again.
func (c *Context) close() {
	c.api.contextSet(0)
	c.api.contextRelease(c.device)
}

func (c *Context) readInfo(info *Info) error {
	var name [256]byte
	if err := c.api.check("cuDeviceGetName", c.api.deviceName(&name[0], int32(len(name)-1), c.device)); err != nil {
		return err
	}
	info.Name = goString(&name[0])
	for attribute, to := range map[int32]*int{
		attributeMaxGrid:        &info.MaxGrid,
		attributeMaxShared:      &info.MaxShared,
		attributeProcessors:     &info.Processors,
		attributeMajor:          &info.Major,
		attributeMinor:          &info.Minor,
		attributeMaxSharedOptIn: &info.MaxSharedOptIn,
	} {
		var v int32
		if err := c.api.check("cuDeviceGetAttribute", c.api.deviceAttribute(&v, attribute, c.device)); err != nil {
			return err
		}
		*to = int(v)
	}
	return nil
}
