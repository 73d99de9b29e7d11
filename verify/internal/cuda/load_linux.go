//go:build (amd64 || arm64) && !nogpu

package cuda

import "github.com/ebitengine/purego"

// libraries are where the driver may be: where the loader looks, and then folders that the loader
// doesn't know in some containers.
var libraries = [...]string{
	"libcuda.so.1",
	"/usr/local/nvidia/lib64/libcuda.so.1",
	"/usr/lib64-nvidia/libcuda.so.1",
	"/usr/lib/wsl/lib/libcuda.so.1",
	"/run/opengl-driver/lib/libcuda.so.1",
}

// openLibrary never closes a library that it opened, because the driver starts threads that can't
// be stopped.
func openLibrary(path string) (uintptr, error) {
	if path != "" {
		return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	}
	var first error
	for _, path := range libraries {
		lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return lib, nil
		}
		if first == nil {
			first = err
		}
	}
	return 0, first
}

func lookup(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }
