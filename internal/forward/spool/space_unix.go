//go:build unix

package spool

import "golang.org/x/sys/unix"

// FreeSpace is how many bytes the file system of dir still takes from this user; ok is false if it
// doesn't say.
func FreeSpace(dir string) (n int64, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert // the types differ between systems
}

// newPages is memory for a spool that goes back to the system with freePages.
func newPages(size int64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
}

func freePages(b []byte) error { return unix.Munmap(b) }
