//go:build !unix

package spool

// FreeSpace doesn't know.
func FreeSpace(string) (n int64, ok bool) { return 0, false }

// newPages is memory for a spool, from the heap.
func newPages(size int64) ([]byte, error) { return make([]byte, size), nil }

func freePages([]byte) error { return nil }
