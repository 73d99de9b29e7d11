//go:build nogpu || !(linux || windows) || !(amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"
)

func load(path string) (api, error) { return nil, Find(path) }

func callAt(uintptr, []uintptr) uintptr { panic("cuda: no library is loaded") }

// Find always returns ErrNoDriver, because this build can't load a library.
func Find(string) error {
	return fmt.Errorf("%w: this build for %s/%s does not load one", ErrNoDriver, runtime.GOOS,
		runtime.GOARCH)
}
