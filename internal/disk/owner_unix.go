//go:build unix

package disk

import (
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// whose says why others may change a file or folder, or returns "". The system's administrator may
// change everything anyway.
func whose(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return ""
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return "belongs to another user"
	case isShared(info):
		return "may be written to by other users"
	}
	return ""
}

// isShared reports whether everyone, or a group, may rename what is in a folder. With the sticky
// bit, no one can rename another user's files. It doesn't count the group of this process,
// or the private group of the folder's owner, which has the owner's number.
func isShared(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	group := ok && mode&0o020 != 0 && int(st.Gid) != os.Getegid() && st.Gid != st.Uid
	return mode&fs.ModeSticky == 0 && (mode&0o002 != 0 || group)
}

// withoutOthers returns the mode, as chmod takes it, that keeps others from writing to a folder of
// this user, or "" if none is needed.
func withoutOthers(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() || !isShared(info) {
		return ""
	}
	return "go-w"
}

// Group returns the number of a file's group.
func Group(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}

// GroupIn returns the number of the group that new files in a folder get: the folder's own where it
// or the system says so, else the user's.
func GroupIn(folder fs.FileInfo) int {
	if folder.Mode()&fs.ModeSetgid != 0 || runtime.GOOS != "linux" {
		return Group(folder)
	}
	return os.Getegid()
}

// inode returns the number that the system gives a file.
func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino) //nolint:unconvert // the types differ between systems
	}
	return 0
}

// Links returns the number of names a file has.
func Links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // the types differ between systems
	}
	return 1
}
