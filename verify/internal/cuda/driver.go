package cuda

import (
	"errors"
	"fmt"
)

// Driver is the loaded library. Goroutines may share it.
type Driver struct {
	api   api
	count int
}

// Open loads and starts the driver: the library at path, or the system's if path is "". Without a
// driver or a device, which is normal, it returns ErrNone.
func Open(path string) (*Driver, error) {
	a, err := load(path)
	if err != nil {
		return nil, err
	}
	var count int32
	err = a.call("cuInit", 0)
	if err == nil {
		err = a.call("cuDeviceGetCount", &count)
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Code == codeNoDevice {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if err == nil && count == 0 {
		err = ErrNone
	}
	if err != nil {
		return nil, err
	}
	return &Driver{a, int(count)}, nil
}

// Count returns the number of devices. The driver obeys CUDA_VISIBLE_DEVICES.
func (d *Driver) Count() int { return d.count }
