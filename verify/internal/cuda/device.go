package cuda

import (
	"fmt"
	"runtime"
)

// Info describes a device.
type Info struct {
	Name         string
	Major, Minor int // compute capability
	Processors   int // multiprocessors
}

// Device is one GPU with its primary context. Goroutines may share it.
type Device struct {
	api     api
	ordinal int32
	info    Info
	work    chan func(*Context)
	done    chan struct{} // closed when the goroutine has ended
}

// Context is a device's context on its own thread. It is valid only inside Device.Do.
type Context struct {
	api
	info   *Info
	device int32
	handle uintptr
}

// OpenDevice creates the context of device i and the goroutine that owns it. Close ends both.
func (d *Driver) OpenDevice(i int) (*Device, error) {
	dev := &Device{api: d.api, ordinal: int32(i), work: make(chan func(*Context)),
		done: make(chan struct{})}
	ready := make(chan error)
	go dev.run(ready)
	if err := <-ready; err != nil {
		<-dev.done
		return nil, fmt.Errorf("device %d: %w", i, err)
	}
	return dev, nil
}

// Info describes the device.
func (d *Device) Info() Info { return d.info }

// run is the device's goroutine. Its thread ends with it, so that no other goroutine gets a thread
// with a context.
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
	for f := range d.work {
		f(c)
	}
}

// Do runs f on the device's thread and returns f's error. Closures run one after the other, so keep
// f short.
func (d *Device) Do(f func(c *Context) error) error {
	result := make(chan error, 1)
	d.work <- func(c *Context) { result <- f(c) }
	return <-result
}

// Close waits for a running closure, then releases the context with all its memory, modules,
// streams, and events. Nothing may use the device after that. Don't close a device that may not
// answer, because releasing a context waits for the work on it; leave it until the process ends.
func (d *Device) Close() {
	close(d.work)
	<-d.done
}

func (c *Context) open(d *Device) error {
	if err := c.call("cuDeviceGet", &c.device, d.ordinal); err != nil {
		return err
	}
	if err := c.readInfo(&d.info); err != nil {
		return err
	}
	if err := c.call("cuDevicePrimaryCtxRetain", &c.handle, c.device); err != nil {
		return err
	}
	if err := c.call("cuCtxSetCurrent", c.handle); err != nil {
		c.close()
		return err
	}
	return nil
}

// close ignores results, because after a fault every call returns that fault again.
func (c *Context) close() {
	c.result("cuCtxSetCurrent", 0)
	c.result("cuDevicePrimaryCtxRelease_v2", c.device)
}

func (c *Context) readInfo(info *Info) error {
	var name [256]byte
	if err := c.call("cuDeviceGetName", &name, len(name)-1, c.device); err != nil {
		return err
	}
	info.Name = goString(&name[0])
	for attribute, to := range map[int]*int{ // by their numbers in the driver's interface
		16: &info.Processors,
		75: &info.Major,
		76: &info.Minor,
	} {
		var v int32
		if err := c.call("cuDeviceGetAttribute", &v, attribute, c.device); err != nil {
			return err
		}
		*to = int(v)
	}
	return nil
}
