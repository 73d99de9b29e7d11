//go:build !unix

package pipeline

// freeSpace doesn't know.
func freeSpace(string) (n int64, ok bool) { return 0, false }
