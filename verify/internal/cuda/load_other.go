//go:build nogpu || !(linux || windows) || !(amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"
)

// load always returns ErrNone, because this build can't load a library.
func load(string) (api, error) {
	return nil, fmt.Errorf("%w: this build for %s/%s does not load one", ErrNone, runtime.GOOS,
		runtime.GOARCH)
}

func callAt(uintptr, []uintptr) uintptr { panic("cuda: no library is loaded") }
