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
func (c *Context) NewStream() (Stream, error) {
	var s uintptr
	err := c.api.check("cuStreamCreate", c.api.StreamCreate(&s, streamNonBlocking))
	return Stream(s), err
}

// NewEvent creates an event.
func (c *Context) NewEvent() (Event, error) {
	var e uintptr
	err := c.api.check("cuEventCreate", c.api.EventCreate(&e, eventNoTiming))
	return Event(e), err
}

// Record puts the event after the work that the stream has so far.
func (c *Context) Record(e Event, s Stream) error {
	return c.api.check("cuEventRecord", c.api.EventRecord(uintptr(e), uintptr(s)))
}

// Reached reports whether the stream has reached the event. The error may come from any work before
// it.
func (c *Context) Reached(e Event) (bool, error) {
	code := c.api.EventQuery(uintptr(e))
	if code == codeNotReady {
		return false, nil
	}
	return code == codeSuccess, c.api.check("cuEventQuery", code)
}
