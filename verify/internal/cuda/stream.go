package cuda

import "time"

// Stream is a queue of work on a device.
type Stream uintptr

// Event is a mark in a stream.
type Event uintptr

const (
	streamNonBlocking = 1 // does not wait for the default stream
	eventNoTiming     = 2
)

// NewStream makes a stream that waits for no other.
func (c *Context) NewStream() (Stream, error) {
	var s uintptr
	err := c.api.check("cuStreamCreate", c.api.StreamCreate(&s, streamNonBlocking))
	return Stream(s), err
}

// DestroyStream frees a stream.
func (c *Context) DestroyStream(s Stream) error {
	return c.api.check("cuStreamDestroy", c.api.StreamDestroy(uintptr(s)))
}

// Synchronize waits for all work of a stream, and blocks the device's thread meanwhile.
func (c *Context) Synchronize(s Stream) error {
	return c.api.check("cuStreamSynchronize", c.api.StreamSynchronize(uintptr(s)))
}

// NewEvent makes an event; only an event with timing can be given to Elapsed.
func (c *Context) NewEvent(timing bool) (Event, error) {
	flags := uint32(eventNoTiming)
	if timing {
		flags = 0
	}
	var e uintptr
	err := c.api.check("cuEventCreate", c.api.EventCreate(&e, flags))
	return Event(e), err
}

// DestroyEvent frees an event.
func (c *Context) DestroyEvent(e Event) error {
	return c.api.check("cuEventDestroy", c.api.EventDestroy(uintptr(e)))
}

// Record puts the event behind the work that the stream has so far.
func (c *Context) Record(e Event, s Stream) error {
	return c.api.check("cuEventRecord", c.api.EventRecord(uintptr(e), uintptr(s)))
}

// Reached reports whether the stream has got to the event. The error may be that of any work before it.
func (c *Context) Reached(e Event) (bool, error) {
	code := c.api.EventQuery(uintptr(e))
	if code == codeNotReady {
		return false, nil
	}
	return code == codeSuccess, c.api.check("cuEventQuery", code)
}

// Elapsed is the time between two events that were reached.
func (c *Context) Elapsed(from, to Event) (time.Duration, error) {
	var ms float32
	err := c.api.check("cuEventElapsedTime", c.api.EventElapsed(&ms, uintptr(from), uintptr(to)))
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}
