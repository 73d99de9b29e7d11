//go:build unix

package disk

import (
	"io/fs"
	"os"
	"syscall"
)

// whose says why others may change a file or folder, or returns "". The user's own group counts as
// the user. The system's administrator may change everything anyway.
func whose(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	switch {
	case !ok:
		return ""
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return "belongs to another user"
	case mode&fs.ModeSticky != 0: // others can't change a user's files in such a folder
		return ""
	case mode&0o002 != 0, mode&0o020 != 0 && int(st.Gid) != os.Getegid():
		return "may be written to by other users"
	}
	return ""
}

// isShared reports whether every user may rename what is in a folder.
func isShared(info fs.FileInfo) bool { return info.Mode()&(0o002|fs.ModeSticky) == 0o002 }

// links returns the number of names a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // the types differ between systems
	}
	return 1
}
