package verify

import (
	"errors"
	"io"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// TestStructure breaks everything that Open checks.
func TestStructure(t *testing.T) {
	good := encode(plain.Normal(40_000, 3))
	good.splitAt(1000)
	zeros := make([]byte, 1<<16)
	for name, x := range map[string]struct {
		array string
		spoil func(s *stored)
	}{
		"no lut rows":             {NameLUTs, func(s *stored) { s.luts = nil }},
		"one lut row":             {NameLUTs, func(s *stored) { s.luts = s.luts[:256] }},
		"19 lut rows":             {NameLUTs, func(s *stored) { s.luts = zeros[:19*256] }},
		"half a lut row":          {NameLUTs, func(s *stored) { s.luts = s.luts[:len(s.luts)-1] }},
		"luts of zeros":           {NameLUTs, func(s *stored) { s.luts = zeros[:512] }},
		"huge luts":               {NameLUTs, func(s *stored) { s.luts = zeros }},
		"no stream":               {NameEncodedExponent, func(s *stored) { s.stream = nil }},
		"longer stream":           {NameEncodedExponent, func(s *stored) { s.stream = append(s.stream, 0) }},
		"shorter stream":          {NameEncodedExponent, func(s *stored) { s.stream = s.stream[:len(s.stream)-1] }},
		"short sign_mantissa":     {NameOutputPositions, func(s *stored) { s.sm = s.sm[1:] }},
		"long sign_mantissa":      {NameOutputPositions, func(s *stored) { s.sm = append(s.sm, 0) }},
		"no weights":              {NameSignMantissa, func(s *stored) { s.source, s.sm = nil, nil }},
		"short gaps":              {NameGaps, func(s *stored) { s.gaps = s.gaps[1:] }},
		"gaps of one chunk more":  {NameGaps, func(s *stored) { s.gaps = append(s.gaps, zeros[:320]...) }},
		"odd positions":           {NameOutputPositions, func(s *stored) { s.positions = s.positions[1:] }},
		"positions for one less":  {NameOutputPositions, func(s *stored) { s.positions = s.positions[8:] }},
		"positions, last missing": {NameOutputPositions, func(s *stored) { s.positions = s.positions[:len(s.positions)-4] }},
		"positions start late":    {NameOutputPositions, func(s *stored) { s.positions[0] = 1 }},
		"positions fall":          {NameOutputPositions, func(s *stored) { copy(s.positions[8:], s.positions[4:8]) }},
		"positions end early":     {NameOutputPositions, func(s *stored) { s.positions[len(s.positions)-4]-- }},
		"positions off by one":    {NameOutputPositions, func(s *stored) { s.positions[4]++ }},
		"chunk too large":         {NameOutputPositions, func(s *stored) { copy(s.positions[4:], []byte{0xff, 0x5b, 0, 0}) }},
		"odd split":               {NameSplitPositions, func(s *stored) { s.split = s.split[1:] }},
		"split missing":           {NameSplitPositions, func(s *stored) { s.split = nil }},
		"split elsewhere":         {NameSplitPositions, func(s *stored) { s.split[0]++ }},
		"split behind the end":    {NameSplitPositions, func(s *stored) { s.split[3] = 1 }},
		"split negative":          {NameSplitPositions, func(s *stored) { s.split[7] = 0x80 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := good.clone()
			x.spoil(s)
			err := s.compare(CompareOptions{})
			var bad *StructureError
			if !errors.As(err, &bad) || bad.Array != x.array {
				t.Errorf("want a StructureError of %s, got %v", x.array, err)
			}
		})
	}
}

// lutsOf makes tables from rows, which set ranges of slots to values, and from code lengths.
func lutsOf(lengths map[uint8]uint8, rows ...map[int]uint8) []byte {
	var luts []byte
	for _, row := range rows {
		luts = append(luts, plain.Filled(row, new(uint8))...)
	}
	last := make([]byte, rowBytes)
	for s, l := range lengths {
		last[s] = l
	}
	return append(luts, last...)
}

func TestHostileTables(t *testing.T) {
	jump := func(table int) uint8 { return uint8(256 - table) }
	for name, x := range map[string]struct {
		luts []byte
		good bool
	}{
		"plain":             {lutsOf(map[uint8]uint8{7: 1, 8: 1}, map[int]uint8{0: 7, 128: 8}), true},
		"length 0":          {lutsOf(map[uint8]uint8{7: 1}, map[int]uint8{0: 7, 128: 8}), false},
		"length 33":         {lutsOf(map[uint8]uint8{7: 1, 8: 33}, map[int]uint8{0: 7, 128: 8}), false},
		"length below":      {lutsOf(map[uint8]uint8{7: 1, 8: 9}, map[int]uint8{0: 7, 128: 8}), false},
		"length above":      {lutsOf(map[uint8]uint8{7: 1, 8: 2, 9: 8}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 128: 9}), false},
		"two levels":        {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 9}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 128: 9}), true},
		"jump to no table":  {lutsOf(map[uint8]uint8{7: 1}, map[int]uint8{0: 7, 255: jump(1)}), false},
		"jump far":          {lutsOf(map[uint8]uint8{7: 1}, map[int]uint8{0: 7, 255: jump(16)}), false},
		"jump to itself":    {lutsOf(map[uint8]uint8{7: 1, 8: 9}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 128: jump(1)}), false},
		"jump back":         {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 17}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 255: jump(2)}, map[int]uint8{0: 9, 255: jump(1)}), false},
		"five levels":       {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 17, 10: 25, 11: 32}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 255: jump(2)}, map[int]uint8{0: 9, 255: jump(3)}, map[int]uint8{0: 10, 255: jump(4)}, map[int]uint8{0: 11}), false},
		"four levels":       {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 17, 10: 25}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: 8, 255: jump(2)}, map[int]uint8{0: 9, 255: jump(3)}, map[int]uint8{0: 10}), true},
		"leaked jump":       {lutsOf(map[uint8]uint8{7: 1, 8: 9, 9: 17}, map[int]uint8{0: 7, 255: jump(1)}, map[int]uint8{0: jump(1), 128: 8}), true},
		"zero bits hang":    {lutsOf(map[uint8]uint8{7: 1, 8: 9}, map[int]uint8{0: jump(1), 1: 7, 255: jump(1)}, map[int]uint8{0: jump(1), 128: 8}), false},
		"no length, leaked": {lutsOf(map[uint8]uint8{7: 1, 8: 9}, map[int]uint8{0: 7, 254: jump(1), 255: 5}, map[int]uint8{0: 5, 128: 8}), false},
	} {
		_, err := parseTables(x.luts)
		var bad *StructureError
		if x.good != (err == nil) || err != nil && !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnread changes bytes that no decoder reads. Compare passes; CheckUnread warns.
func TestUnread(t *testing.T) {
	s := encode(plain.Normal(101, 5))
	for name, x := range map[string]struct {
		array string
		spoil func(s *stored)
	}{
		"gap behind the end": {NameGaps, func(s *stored) { s.gaps[300] = 1 }},
		"last gap":           {NameGaps, func(s *stored) { s.gaps[319] = 1 }},
		"length of nothing":  {NameLUTs, func(s *stored) { s.luts[len(s.luts)-1] = 7 }},
		"tail bit":           {NameEncodedExponent, func(s *stored) { s.stream[len(s.stream)-1] ^= 1 }},
	} {
		c := s.clone()
		x.spoil(c)
		if err := c.compare(CompareOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		u, err := c.open()
		must(t, err)
		warning, err := u.CheckUnread()
		if err != nil || warning == nil || warning.Array != x.array {
			t.Errorf("%s: %v, %v", name, warning, err)
		}
	}
}

// zeros is a reader of any size.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// TestHugeClaims opens arrays of absurd sizes. If Open believed them, the test would run out of
// memory.
func TestHugeClaims(t *testing.T) {
	const huge = 1 << 50
	sizes := map[string]int64{
		NameLUTs: 512, NameEncodedExponent: chunkBytes, NameSignMantissa: 1000, NameOutputPositions: 8, NameGaps: gapBytes,
	}
	for _, array := range arrayNames {
		a := ArraysAt(func(name string) *io.SectionReader { return io.NewSectionReader(zeros{}, 0, sizes[name]) })
		a[array] = io.NewSectionReader(zeros{}, 0, huge)
		if _, err := Open(a, []int64{1000}); !ours(err) {
			t.Errorf("%s of 2^50 bytes: %v", array, err)
		}
	}
}
