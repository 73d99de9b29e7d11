package disk

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// allocate allocates space for size bytes without changing the file's size, so that Commit can
// still check the length. If the file system doesn't support that, writing allocates the space, as
// on other systems.
func allocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err,
			unix.EPERM):
			return nil
		}
		return err
	}
}

// mounts lists what is mounted.
func mounts() string {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	return string(b)
}

// isPodVolume reports whether a folder is a volume on disk that Kubernetes has made for this pod
// alone: it gives every such emptyDir the mode 0777. An emptyDir in memory looks like any tmpfs.
func isPodVolume(dir, mounts string) bool {
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line) // id, parent, device, folder of the device, where it is mounted
		if len(f) > 4 && f[4] == dir && strings.Contains(f[3], "/kubernetes.io~empty-dir/") {
			return true
		}
	}
	return false
}

// beginWriteback asks the system to start writing bytes to disk, so that Sync has little left to
// do. It waits at most for space in the disk's queue. Sync reports any error again.
func beginWriteback(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
