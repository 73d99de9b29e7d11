//go:build linux || darwin

package alloc

import (
	"testing"
	"unsafe"
)

// TestGuarded: all bytes can be used, and the one beyond them can't.
func TestGuarded(t *testing.T) {
	for _, n := range []int{1, 100, 4096, 5000} {
		g := Guarded(t, n)
		for i, b := range g {
			if len(b) != n || crashes(func() { b[0], b[n-1] = 1, 1 }) {
				t.Errorf("%d bytes: they can't be used", n)
			}
			beyond := []int{-1, n}[i]
			at := (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), beyond))
			if !crashes(func() { *at = 1 }) {
				t.Errorf("%d bytes: byte %d can be written", n, beyond)
			}
		}
	}
}
