//go:build (linux || windows) && (amd64 || arm64) && !nogpu

package cuda

import (
	"fmt"
	"reflect"

	"github.com/ebitengine/purego"
)

func find(path string) error {
	if _, err := openLibrary(path); err != nil {
		return fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	return nil
}

// load opens the library at path, or the system's, and looks up all of it: an old driver fails here,
// with a name, and not later.
func load(path string) (*api, error) {
	lib, err := openLibrary(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	a := new(api)
	for field, function := range reflect.ValueOf(a).Elem().Fields() {
		address, err := lookup(lib, field.Tag.Get("symbol"))
		if err != nil {
			return nil, fmt.Errorf("the NVIDIA driver is too old: %w", err)
		}
		purego.RegisterFunc(function.Addr().Interface(), address)
	}
	return a, nil
}
