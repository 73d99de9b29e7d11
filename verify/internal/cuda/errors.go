package cuda

import (
	"errors"
	"fmt"
)

// ErrNone reports that this machine doesn't have the driver's library, that this build can't load it,
// or that it shows no device that this process may use.
var ErrNone = errors.New("no NVIDIA driver or no device")

// Result codes.
const (
	codeSuccess  = 0
	codeNoDevice = 100
	codeNotReady = 600
)

// Error is a result other than success.
type Error struct {
	Call string // as in the manual, e.g. "cuMemAlloc"
	Code int
	Name string // e.g. "CUDA_ERROR_OUT_OF_MEMORY", or "" if the driver has no name
	Text string
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: error %d", e.Call, e.Code)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Call, e.Name, e.Text)
}
