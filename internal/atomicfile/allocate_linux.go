package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate takes room for size bytes without changing the file's size, so that Commit's length check still means
// something. Where the file system cannot do that, room is taken by writing, as everywhere else.
func allocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return nil
		}
		return err
	}
}
