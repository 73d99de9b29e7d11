package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// callLimit is how long a closure may take. The driver's compiler takes seconds; a call to a lost device may never return.
const callLimit = 5 * time.Minute

// Info describes a device.
type Info struct {
	Name         string
	Major, Minor int // compute capability
	Processors   int // multiprocessors
	MaxGrid      int // blocks
}

// Attributes of a device, by their numbers in the driver's interface.
const (
	attributeMaxGrid    = 5
	attributeProcessors = 16
	attributeMajor      = 75
	attributeMinor      = 76
)

// Device is one GPU with its primary context. Its methods may be called by any goroutine.
type Device struct {
	api     *api
	ordinal int32
	info    Info
	work    chan func(*Context)
	done    chan struct{} // closed when the goroutine has ended

	closing   sync.Once
	closed    chan struct{}
	abandoned atomic.Bool // the context is left as it is
	after     func(time.Duration) <-chan time.Time
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
	dev := &Device{api: d.api, ordinal: int32(i), after: time.After}
	dev.work, dev.done, dev.closed = make(chan func(*Context)), make(chan struct{}), make(chan struct{})
	ready := make(chan error, 1) // the receiver may be gone
	go dev.run(ready)
	select {
	case err := <-ready:
		if err != nil {
			<-dev.done
			return nil, fmt.Errorf("device %d: %w", i, err)
		}
		return dev, nil
	case <-dev.after(callLimit):
		dev.Abandon()
		return nil, fmt.Errorf("device %d: %w", i, ErrStuck)
	}
}

// Info tells about the device.
func (d *Device) Info() Info { return d.info }

// run is the device's goroutine. Its thread ends with it, so that no other goroutine gets a thread with a context.
func (d *Device) run(ready chan<- error) {
	defer close(d.done)
	runtime.LockOSThread()
	c := &Context{api: d.api, info: &d.info}
	if err := c.open(d); err != nil {
		ready <- err
		return
	}
	defer func() {
		if !d.abandoned.Load() {
			c.close()
		}
	}()
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

// Do runs f on the device's thread and returns its error. Closures run one after the other, so f should be short. If f does not
// return in minutes, the error is ErrStuck and the device is abandoned; f may still be running, so the caller must not read its
// results.
func (d *Device) Do(f func(c *Context) error) error {
	result := make(chan error, 1) // the receiver may be gone
	late := d.after(callLimit)
	select {
	case d.work <- func(c *Context) { result <- f(c) }:
	case <-d.closed:
		return ErrClosed
	case <-late:
		d.Abandon()
		return ErrStuck
	}
	select {
	case err := <-result:
		return err
	case <-late:
		d.Abandon()
		return ErrStuck
	}
}

// Close gives the context back with all that was allocated. It waits for a running closure, but not for ever.
func (d *Device) Close() {
	d.closing.Do(func() { close(d.closed) })
	if d.abandoned.Load() {
		return
	}
	select {
	case <-d.done:
	case <-d.after(callLimit):
	}
}

// Abandon is Close for a device that may not answer: it waits for nothing and leaves the context, and all memory in it,
// to the end of the process. Releasing a context would wait for the work on it.
func (d *Device) Abandon() {
	d.abandoned.Store(true)
	d.closing.Do(func() { close(d.closed) })
}

func (c *Context) open(d *Device) error {
	if err := c.api.check("cuDeviceGet", c.api.DeviceGet(&c.device, d.ordinal)); err != nil {
		return err
	}
	if err := c.readInfo(&d.info); err != nil {
		return err
	}
	if err := c.api.check("cuDevicePrimaryCtxRetain", c.api.ContextRetain(&c.handle, c.device)); err != nil {
		return err
	}
	if err := c.api.check("cuCtxSetCurrent", c.api.ContextSet(c.handle)); err != nil {
		c.close()
		return err
	}
	return nil
}

// close ignores results: after a fault every call returns that fault again.
func (c *Context) close() {
	c.api.ContextSet(0)
	c.api.ContextRelease(c.device)
}

func (c *Context) readInfo(info *Info) error {
	var name [256]byte
	if err := c.api.check("cuDeviceGetName", c.api.DeviceName(&name[0], int32(len(name)-1), c.device)); err != nil {
		return err
	}
	info.Name = goString(&name[0])
	for attribute, to := range map[int32]*int{
		attributeMaxGrid:    &info.MaxGrid,
		attributeProcessors: &info.Processors,
		attributeMajor:      &info.Major,
		attributeMinor:      &info.Minor,
	} {
		var v int32
		if err := c.api.check("cuDeviceGetAttribute", c.api.DeviceAttribute(&v, attribute, c.device)); err != nil {
			return err
		}
		*to = int(v)
	}
	return nil
}
