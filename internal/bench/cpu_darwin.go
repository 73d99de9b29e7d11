package bench

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// cpuName is what the kernel calls the processor, or the architecture.
func cpuName() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return runtime.GOARCH
	}
	return name
}
