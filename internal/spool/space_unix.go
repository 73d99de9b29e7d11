//go:build unix

package spool

import "golang.org/x/sys/unix"

// FreeSpace is how many bytes the file system of dir still takes from this user; ok is false if it doesn't say.
func FreeSpace(dir string) (n int64, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert // the types differ between systems
}

// pages is memory for a spool that goes back to the system when free is called.
func pages(size int64) (b []byte, free func([]byte) error, err error) {
	b, err = unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return b, unix.Munmap, err
}
