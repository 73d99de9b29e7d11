//go:build linux || darwin

package alloc

import (
	"os"
	"syscall"
	"testing"
)

// Guarded returns n bytes twice: right after a page without access, and right before one. Any
// access beyond the bytes crashes. The two share memory, so use one after the other.
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
