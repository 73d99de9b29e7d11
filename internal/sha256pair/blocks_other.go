//go:build !amd64 || noasm

package sha256pair

const hasBlocks = false

func blocks(a, b *state, p, q []byte, n int) { panic("sha256pair: internal error: no routine for two") }
