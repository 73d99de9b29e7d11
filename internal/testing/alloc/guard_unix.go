//go:build linux || darwin

package alloc

import (
	"os"
	"syscall"
	"testing"
)

// Guarded gives n bytes twice: right behind a page that nobody may touch, and right before one.
// Whoever reads or writes beyond them dies. The two share memory, so a test uses one after the
// other.
func Guarded(tb testing.TB, n int) [2][]byte {
	tb.Helper()
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	b, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = syscall.Munmap(b) })
	for _, guard := range [][]byte{b[:page], b[page+size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			tb.Fatal(err)
		}
	}
	inside := b[page : page+size]
	return [2][]byte{inside[:n:n], inside[size-n:]}
}
