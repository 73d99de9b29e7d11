package fetch

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"
)

// TestPiecesInAnyOrder checks that the sum of a tensor is that of its bytes in order, however it was
// cut and in whatever order it was read, that it depends on every bit, and that crc is the CRC-32C.
func TestPiecesInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		data := make([]byte, 1+random.IntN(3000))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		sum := func(data []byte) uint32 {
			p := &pieces{section: io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))}
			var cuts []int
			for at := 0; at < len(data); at += 1 + random.IntN(1000) {
				cuts = append(cuts, at)
			}
			for _, i := range random.Perm(len(cuts)) {
				end := len(data)
				if i+1 < len(cuts) {
					end = cuts[i+1]
				}
				if _, err := p.ReadAt(make([]byte, end-cuts[i]), int64(cuts[i])); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			}
			return p.sum
		}
		want := crc(0, data)
		if got := sum(data); got != want {
			t.Fatalf("%d bytes: %08x, in order %08x", len(data), got, want)
		}
		standard := shifted(0xffffffff, int64(len(data))) ^ want ^ 0xffffffff
		if standard != crc32.Checksum(data, castagnoli) {
			t.Fatalf("%d bytes: %08x isn't the CRC-32C", len(data), standard)
		}
		data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		if sum(data) == want {
			t.Fatal("another bit, the same sum")
		}
	}
}
