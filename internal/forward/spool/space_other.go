//go:build !unix

package spool

// FreeSpace always reports that it doesn't know.
func FreeSpace(string) (n int64, ok bool) { return 0, false }

// newPages returns memory for a spool, from the heap.
func newPages(size int64) ([]byte, error) { return make([]byte, size), nil }

func freePages([]byte) error { return nil }
