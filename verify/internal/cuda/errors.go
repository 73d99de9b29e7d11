package cuda

import (
	"errors"
	"fmt"
)

// ErrNoDriver says that the driver's library is not on this machine, or that this build cannot load
// it.
var ErrNoDriver = errors.New("no NVIDIA driver")

// ErrNoDevice says that there is a driver, but it shows this process no device.
var ErrNoDevice = errors.New("the NVIDIA driver shows no device")

// ErrClosed says that a device was used after its Close.
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
	Call string // as the manual has it, e.g. "cuMemAlloc"
	Code int
	Name string // e.g. "CUDA_ERROR_OUT_OF_MEMORY", empty if the driver has none
	Text string
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: error %d", e.Call, e.Code)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Call, e.Name, e.Text)
}

// Hint says what can be done about the error; "" if its text does.
func (e *Error) Hint() string {
	switch e.Code {
	case codeNoCompiler:
		return "the driver's compiler is missing: install the library libnvidia-ptxjitcompiler of the driver's own version"
	case codeCompilerOff:
		return "the driver's compiler is switched off: unset CUDA_DISABLE_PTX_JIT"
	}
	return ""
}
