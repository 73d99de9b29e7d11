//go:build nogpu || !(linux || windows) || !(amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"
)

func load(path string) (*api, error) { return nil, Find(path) }

// Find tells that there is no library to load: the error is ErrNoDriver.
func Find(string) error {
	return fmt.Errorf("%w: this build for %s/%s does not load one", ErrNoDriver, runtime.GOOS,
		runtime.GOARCH)
}
