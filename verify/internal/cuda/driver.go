package cuda

import (
	"errors"
	"fmt"
)

// Driver is the loaded library. Goroutines may share it.
type Driver struct {
	api     api
	version int
	count   int
}

// Open loads and starts the driver: the library at path, or the system's if path is "". Without a
// driver or a device, which is normal, it returns ErrNoDriver or ErrNoDevice.
func Open(path string) (*Driver, error) {
	a, err := load(path)
	if err != nil {
		return nil, err
	}
	d := &Driver{api: a}
	if err := d.start(); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Code == codeNoDevice {
			return nil, fmt.Errorf("%w: %w", ErrNoDevice, err)
		}
		return nil, err
	}
	if d.count == 0 {
		return nil, ErrNoDevice
	}
	return d, nil
}

func (d *Driver) start() error {
	if err := d.api.call("cuInit", 0); err != nil {
		return err
	}
	var version, count int32
	if err := d.api.call("cuDriverGetVersion", &version); err != nil {
		return err
	}
	if err := d.api.call("cuDeviceGetCount", &count); err != nil {
		return err
	}
	d.version, d.count = int(version), int(count)
	return nil
}

// Count returns the number of devices. The driver obeys CUDA_VISIBLE_DEVICES.
func (d *Driver) Count() int { return d.count }

// Version returns the CUDA version that the driver supports.
func (d *Driver) Version() (major, minor int) { return d.version / 1000, d.version % 1000 / 10 }
