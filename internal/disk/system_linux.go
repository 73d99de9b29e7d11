package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate takes room for size bytes without changing the file's size, so that Commit's length
// check still means something. Where the file system cannot do that, room is taken by writing, as
// everywhere else.
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

// beginWriteback asks the system to start putting bytes on disk, so that Sync finds little left to
// do. It waits for room in the disk's queue at most. An error here shows again in Sync.
func beginWriteback(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
