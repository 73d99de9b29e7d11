package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// beginWriteback asks the system to start putting bytes on disk, so that Sync finds little left to do. It waits for room in
// the disk's queue at most. An error here shows again in Sync.
func beginWriteback(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
