package encoder

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/golden"
)

// streamCase is one unit of the compact sets.
type streamCase struct {
	N, Codec      int
	Offset        int      `json:"encoded_offset"`
	Bytes         int      `json:"encoded_bytes"`
	EncodedSHA256 string   `json:"encoded_sha256"`
	Positions     []uint32 `json:"output_positions"`
	GapsBytes     int      `json:"gaps_bytes"`
	GapsPrefix    string   `json:"gaps_prefix_hex"`
	GapsSHA256    string   `json:"gaps_sha256"`
	LUTsOffset    *int     `json:"luts_offset"`
	LUTsRows      int      `json:"luts_rows"`
	Symbols       int      `json:"symbols_offset"`
	Runs          [][2]int
}

// gaps returns the whole tensor. The case stores only its beginning.
func (s streamCase) gaps(t *testing.T) []byte {
	prefix, err := hex.DecodeString(s.GapsPrefix)
	must(t, err)
	return append(prefix, make([]byte, s.GapsBytes-len(prefix))...)
}

func TestGoldenStreams(t *testing.T) {
	var set struct{ Streams []streamCase }
	golden.Case(t, "streams", &set)
	input := golden.Read(t, "streams", "input.bf16")
	coded := golden.Read(t, "streams", "encoded.u8")
	luts := golden.Read(t, "streams", "luts.u8")
	forVariants(t, func(t *testing.T, o options) {
		for _, s := range set.Streams {
			in := input[:2*s.N]
			var h histogram
			h.add(in)
			want := &Encoded{
				EncodedExponent: coded[s.Offset:][:s.Bytes],
				SignMantissa:    golden.SignMantissa(in),
				OutputPositions: littleEndian(s.Positions),
				Gaps:            s.gaps(t),
			}
			if s.LUTsOffset != nil {
				want.LUTs = luts[*s.LUTsOffset:][:s.LUTsRows*lutSlots]
			}
			got, _ := encodeWith(t, o, buildCodebook(&h), []int64{int64(s.N)}, in, 1)
			if d := diff(got, want); d != "" {
				t.Errorf("n = %d: %s", s.N, d)
			}
		}
	})
}

// TestGoldenFixedCodecs encodes data with codes that weren't made from it. It meets every tail
// length, every gap, chunk borders, and codes of 32 bits.
func TestGoldenFixedCodecs(t *testing.T) {
	var set struct {
		Codecs  []codebookCase
		Streams []streamCase
	}
	golden.Case(t, "streams_fixed_codec", &set)
	symbols := golden.Read(t, "streams_fixed_codec", "symbols.u8")
	coded := golden.Read(t, "streams_fixed_codec", "encoded.u8")
	forVariants(t, func(t *testing.T, o options) {
		for i, s := range set.Streams {
			got, _ := encodeWith(t, o, set.Codecs[s.Codec].codebook(), []int64{int64(s.N)}, s.weights(symbols), 2)
			if d := s.check(t, got, coded); d != "" {
				t.Errorf("stream %d, n = %d: %s", i, s.N, d)
			}
		}
	})
}

// weights returns weights with the case's symbols.
func (s streamCase) weights(symbols []byte) []byte {
	if s.Runs == nil {
		return bf16Of(symbols[s.Symbols:][:s.N])
	}
	var list []byte
	for _, run := range s.Runs {
		list = append(list, slices.Repeat([]byte{byte(run[1])}, run[0])...)
	}
	return bf16Of(list)
}

func (s streamCase) check(t *testing.T, got *Encoded, coded []byte) string {
	if d := diffBytes(got.OutputPositions, littleEndian(s.Positions)); d != "" {
		return "output_positions: " + d
	}
	if s.Runs != nil {
		if hexSum(got.EncodedExponent) != s.EncodedSHA256 || hexSum(got.Gaps) != s.GapsSHA256 {
			return "sha256 of encoded_exponent or gaps differs"
		}
		return ""
	}
	if d := diffBytes(got.EncodedExponent, coded[s.Offset:][:s.Bytes]); d != "" {
		return "encoded_exponent: " + d
	}
	return diffBytes(got.Gaps, s.gaps(t))
}

func hexSum(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// bf16Of returns one weight per symbol, with all kinds of sign_mantissa bytes.
func bf16Of(symbols []byte) []byte {
	out := make([]byte, 0, 2*len(symbols))
	for i, s := range symbols {
		sm := byte(167*i + 13)
		out = append(out, s<<7|sm&0x7f, s>>1|sm&0x80)
	}
	return out
}
