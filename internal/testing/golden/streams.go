package golden

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
)

// A Stream is a unit of the compact sets, which leave out what follows from the rest.
type Stream struct {
	plain.Unit
	Codes []plain.Code // nil: those of the unit's own histogram
}

type streamSet struct {
	Codecs []struct {
		Codes [][3]int64
	}
	Streams []streamCase
}

type streamCase struct {
	N, Codec      int
	SymbolsOffset int      `json:"symbols_offset"`
	Runs          [][2]int // count, symbol
	LUTsOffset    *int     `json:"luts_offset"`
	LUTsRows      int      `json:"luts_rows"`
	Offset        int      `json:"encoded_offset"`
	Bytes         int      `json:"encoded_bytes"`
	SHA256        string   `json:"encoded_sha256"`
	Positions     []uint32 `json:"output_positions"`
	GapsBytes     int      `json:"gaps_bytes"`
	GapsPrefix    string   `json:"gaps_prefix_hex"`
	GapsSHA256    string   `json:"gaps_sha256"`
}

// unit returns the case's unit without tables.
func (x streamCase) unit(t testing.TB, coded, input []byte) plain.Unit {
	t.Helper()
	gaps, err := hex.DecodeString(x.GapsPrefix)
	if err != nil {
		t.Fatal(err)
	}
	u := plain.Unit{Sizes: []int64{int64(x.N)}, Input: input, SignMantissa: plain.SignMantissa(input),
		EncodedExponent: coded[x.Offset:][:x.Bytes],
		Gaps:            append(gaps, make([]byte, x.GapsBytes-len(gaps))...)}
	u.OutputPositions, _ = binary.Append(nil, binary.LittleEndian, x.Positions)
	return u
}

// Streams loads units of 1 to 200 weights.
func Streams(t testing.TB) (list []Stream) {
	t.Helper()
	const set = "streams"
	var cases streamSet
	Case(t, set, &cases)
	input, coded := Read(t, set, "input.bf16"), Read(t, set, "encoded.u8")
	luts := Read(t, set, "luts.u8")
	for _, x := range cases.Streams {
		u := x.unit(t, coded, input[:2*x.N])
		if x.LUTsOffset != nil {
			u.LUTs = luts[*x.LUTsOffset:][:256*x.LUTsRows]
		}
		list = append(list, Stream{Unit: u})
	}
	return list
}

// FixedStreams loads units with codes that weren't made for their weights. They have every tail
// length, every gap, chunk borders, and codes of 32 bits. The set stores only hashes of the largest.
// FixedStreams encodes these plainly and compares the hashes.
func FixedStreams(t testing.TB) (list []Stream) {
	t.Helper()
	const set = "streams_fixed_codec"
	var cases streamSet
	Case(t, set, &cases)
	symbols, coded := Read(t, set, "symbols.u8"), Read(t, set, "encoded.u8")
	for i, x := range cases.Streams {
		codes := plain.CodesOf(cases.Codecs[x.Codec].Codes)
		u := plain.Encode(codes, []int64{int64(x.N)}, plain.Weights(x.symbols(symbols)))
		if x.Runs == nil {
			tables := u.LUTs
			u = x.unit(t, coded, u.Input)
			u.LUTs = tables
		} else if sum(u.EncodedExponent) != x.SHA256 || sum(u.Gaps) != x.GapsSHA256 {
			t.Fatalf("%s %d: the plain encoder is wrong", set, i)
		}
		list = append(list, Stream{u, codes})
	}
	return list
}

func (x streamCase) symbols(all []byte) (symbols []byte) {
	if x.Runs == nil {
		return all[x.SymbolsOffset:][:x.N]
	}
	for _, run := range x.Runs {
		symbols = append(symbols, slices.Repeat([]byte{byte(run[1])}, run[0])...)
	}
	return symbols
}

func sum(p []byte) string {
	s := sha256.Sum256(p)
	return hex.EncodeToString(s[:])
}
