//go:build !unix

package spool

// FreeSpace doesn't know.
func FreeSpace(string) (n int64, ok bool) { return 0, false }

// pages is memory for a spool, from the heap.
func pages(size int64) ([]byte, func([]byte) error, error) {
	return make([]byte, size), func([]byte) error { return nil }, nil
}
