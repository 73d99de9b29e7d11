// Package pagecache tells the system which parts of a file it need not keep in memory, so that a file larger than the
// memory does not push out what others need. It is advice only: it changes no byte, and where a system has no way to
// say it, nothing happens. It does not decide when that is worth while.
package pagecache

import (
	"io"
	"os"
)

// Drop says that bytes off to off+n of f will not be read again soon. Pages that are not yet on disk stay, and so do those
// at the ends that the system holds together with others. An f that is no *[os.File] is left alone.
func Drop(f io.ReaderAt, off, n int64) {
	if f, ok := f.(*os.File); ok && n > 0 {
		drop(f, off, n)
	}
}

// DropFile says it of a whole file.
func DropFile(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		Drop(f, 0, info.Size())
	}
}
