// Package alloc limits, in tests, how much memory code may allocate for an input, and which memory
// it may touch. It measures no time, so a busy machine makes no difference.
package alloc

import (
	"runtime"
	"testing"
)

// Bytes returns how many bytes f allocates, including freed ones. Nothing else may run meanwhile.
func Bytes(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// PerByte fails the test if f, which reads an input of n bytes, allocates more than a mebibyte plus
// perByte bytes per byte of input.
func PerByte(tb testing.TB, perByte, n int, f func()) {
	tb.Helper()
	Within(tb, 1<<20+int64(perByte)*int64(n), f)
}

// Within fails the test if f allocates more than limit bytes.
func Within(tb testing.TB, limit int64, f func()) {
	tb.Helper()
	if n := Bytes(f); n > limit {
		tb.Errorf("%d bytes allocated, at most %d were expected", n, limit)
	}
}

// Repeated fails the test if f allocates more than limit bytes in every run; the first runs may
// allocate what later runs reuse. It runs f many times, because the race detector makes a sync.Pool
// lose some of its contents.
func Repeated(tb testing.TB, limit int64, f func()) {
	tb.Helper()
	least := Bytes(f)
	for i := 0; i < 1000 && least > limit; i++ {
		least = min(least, Bytes(f))
	}
	if least > limit {
		tb.Errorf("%d bytes allocated each time, at most %d were expected", least, limit)
	}
}
