//go:build unix

package spool

import "golang.org/x/sys/unix"

// FreeSpace returns how many bytes this user can still write to the file system of dir. ok is false
// if the system doesn't say.
func FreeSpace(dir string) (n int64, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert // types vary
}

// newPages returns memory for a spool. freePages returns it to the system.
func newPages(size int64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
}

func freePages(b []byte) error { return unix.Munmap(b) }
