package cuda

// Stream is a queue of work on a device.
type Stream uintptr

// Event is a mark in a stream.
type Event uintptr

const (
	streamNonBlocking = 1 // doesn't wait for the default stream
	eventNoTiming     = 2
)

// NewStream creates a stream that waits for no other.
func (c *Context) NewStream() (s Stream, err error) {
	err = c.call("cuStreamCreate", &s, streamNonBlocking)
	return s, err
}

// NewEvent creates an event.
func (c *Context) NewEvent() (e Event, err error) {
	err = c.call("cuEventCreate", &e, eventNoTiming)
	return e, err
}

// Record puts the event after the work that the stream has so far.
func (c *Context) Record(e Event, s Stream) error { return c.call("cuEventRecord", e, s) }

// Reached reports whether the stream has reached the event. The error may come from any work before
// it.
func (c *Context) Reached(e Event) (bool, error) {
	code := c.result("cuEventQuery", e)
	if code == codeNotReady {
		return false, nil
	}
	return code == codeSuccess, c.check("cuEventQuery", code)
}
