package pagecache

import (
	"os"

	"golang.org/x/sys/unix"
)

func drop(f *os.File, off, n int64) {
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) { _ = unix.Fadvise(int(fd), off, n, unix.FADV_DONTNEED) })
}

// Memory is how many bytes of memory the machine has; 0 means unknown.
func Memory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit) //nolint:unconvert // the types differ between processors
}
