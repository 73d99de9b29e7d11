//go:build (linux || windows) && (amd64 || arm64) && !nogpu

package cuda

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// load opens the library at path, or the system's, and looks up all functions. For an old driver,
// it returns an error that names the missing function.
func load(path string) (api, error) {
	lib, err := openLibrary(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	a := api{}
	for _, symbol := range symbols {
		if a[symbol], err = lookup(lib, symbol); err != nil {
			return nil, fmt.Errorf("the NVIDIA driver is too old, "+
				"one for CUDA 11.0 or later is needed: %w", err)
		}
	}
	return a, nil
}

func callAt(address uintptr, args []uintptr) uintptr {
	result, _, _ := purego.SyscallN(address, args...)
	return result
}
