//go:build (linux || windows) && (amd64 || arm64) && !nogpu

package cuda

import (
	"fmt"
	"reflect"

	"github.com/ebitengine/purego"
)

// Find tells whether there is a library to load, at path or for "" the system's. It starts nothing,
// and takes no memory to speak of. The error is ErrNoDriver.
func Find(path string) error {
	if _, err := openLibrary(path); err != nil {
		return fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	return nil
}

// load opens the library at path, or the system's, and looks up all functions: an old driver fails
// here, with a name.
func load(path string) (*api, error) {
	lib, err := openLibrary(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	a := new(api)
	for _, group := range []any{&a.devices, &a.kernels, &a.memory, &a.streams} {
		for field, function := range reflect.ValueOf(group).Elem().Fields() {
			address, err := lookup(lib, field.Tag.Get("symbol"))
			if err != nil {
				return nil, fmt.Errorf("the NVIDIA driver is too old, "+
					"one for CUDA 11.0 or later is needed: %w", err)
			}
			purego.RegisterFunc(function.Addr().Interface(), address)
		}
	}
	return a, nil
}
