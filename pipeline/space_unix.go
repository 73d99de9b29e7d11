//go:build unix

package pipeline

import "golang.org/x/sys/unix"

// freeSpace is how many bytes the file system of dir still takes from this user; ok is false if it doesn't say.
func freeSpace(dir string) (n int64, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert // the types differ between systems
}
