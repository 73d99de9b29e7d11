//go:build unix

package disk

import (
	"io/fs"
	"os"
	"syscall"
)

// whose says what makes a file or folder one that others may change; "" if nothing does. The user's
// own group is taken for the user, and the system's administrator may change everything anyway.
func whose(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	switch {
	case !ok:
		return ""
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return "belongs to another user"
	case mode&fs.ModeSticky != 0: // in which everybody's files are safe from the others
		return ""
	case mode&0o002 != 0, mode&0o020 != 0 && int(st.Gid) != os.Getegid():
		return "may be written to by other users"
	}
	return ""
}

// links counts the names of a file.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // the types differ between systems
	}
	return 1
}
