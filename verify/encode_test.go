package verify

import (
	"encoding/binary"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// encode encodes weights with the code of their own histogram.
func encode(bf16 []byte) *stored {
	return storedUnit(plain.Encode(codesOf(bf16), []int64{int64(len(bf16) / 2)}, bf16))
}

// codesOf returns the codes that weights get.
func codesOf(bf16 []byte) []plain.Code {
	var hist [256]int64
	for i := 0; i < len(bf16); i += 2 {
		hist[uint8(binary.LittleEndian.Uint16(bf16[i:])>>7)]++
	}
	return plain.Codes(&hist)
}

// splitAt divides a unit into several tensors.
func (s *stored) splitAt(ends ...int64) {
	s.sizes, s.split = nil, nil
	last := int64(0)
	for _, end := range ends {
		s.split = binary.LittleEndian.AppendUint64(s.split, uint64(end))
		s.sizes = append(s.sizes, end-last)
		last = end
	}
	s.sizes = append(s.sizes, int64(len(s.source)/2)-last)
}
