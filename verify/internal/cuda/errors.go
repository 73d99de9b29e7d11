package cuda

import (
	"errors"
	"fmt"
)

// ErrNoDriver reports that this machine doesn't have the driver's library, or that this build can't
// load it.
var ErrNoDriver = errors.New("no NVIDIA driver")

// ErrNoDevice reports that there is a driver, but no device that this process may use.
var ErrNoDevice = errors.New("the NVIDIA driver shows no device")

// ErrClosed reports that a device was used after its Close.
var ErrClosed = errors.New("the device is closed")

// Result codes.
const (
	codeSuccess  = 0
	codeNoDevice = 100
	codeNotReady = 600

	codeNoCompiler  = 221
	codeCompilerOff = 223
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

// Hint returns what to do about the error, or "".
func (e *Error) Hint() string {
	switch e.Code {
	case codeNoCompiler:
		return "the driver's compiler is missing: install the library libnvidia-ptxjitcompiler " +
			"in the driver's version"
	case codeCompilerOff:
		return "the driver's compiler is turned off: unset CUDA_DISABLE_PTX_JIT"
	}
	return ""
}
