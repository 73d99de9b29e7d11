//go:build !noasm

package sha256pair

import "golang.org/x/sys/cpu"

// hasBlocks says that blocks works on this machine. The SHA instructions came with Zen (2017), Goldmont (2016) and Ice
// Lake (2019).
var hasBlocks = cpu.X86.HasSSSE3 && cpu.X86.HasSSE41 && cpu.X86.HasAVX2 && cpuid7()>>29&1 != 0

// blocks takes n blocks of 64 bytes from p into a and as many from q into b. It cannot be interrupted: callers keep n
// small.
func blocks(a, b *state, p, q []byte, n int) {
	_, _ = p[64*n-1], q[64*n-1]
	blocksSHANI(a, b, &p[0], &q[0], n)
}

//go:noescape
func blocksSHANI(a, b *state, p, q *byte, n int)

// cpuid7 reads leaf 7, which every processor with AVX2 has: x/sys/cpu does not report the SHA instructions.
func cpuid7() (ebx uint32)
