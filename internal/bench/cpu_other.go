//go:build !linux && !darwin

package bench

import "runtime"

// cpuName is the architecture: there is no simple way to learn more.
func cpuName() string { return runtime.GOARCH }
