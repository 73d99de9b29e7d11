package kernel

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/testing/plain"
	"github.com/df11-convert/df11-convert/internal/testing/ptx"
)

func ownModule(t testing.TB) *ptx.Module {
	t.Helper()
	m, err := ptx.Parse(PTX())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// officialPTX returns the official decode.ptx, which we may not ship.
func officialPTX(t testing.TB) string {
	t.Helper()
	path := os.Getenv("DF11_OFFICIAL_PTX")
	if path == "" {
		if os.Getenv("DF11_CI") != "" {
			t.Fatal("DF11_OFFICIAL_PTX is not set, and DF11_CI allows no skips")
		}
		t.Skip("NOT TESTED: the official kernel. DF11_OFFICIAL_PTX names no decode.ptx")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func officialKernel(t testing.TB) *ptx.Kernel {
	t.Helper()
	m, err := ptx.Parse(officialPTX(t))
	if err != nil {
		t.Fatal(err)
	}
	return m.Kernels[Decode]
}

// must fails the test unless a run returned the unit's weights.
func must(t *testing.T, what string, u *unit, out []byte, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s, unit %s: %v", what, u.name, err)
	}
	if i := firstDifference(out, u.bf); i >= 0 {
		t.Fatalf("%s, unit %s: weight %d of %d is %#04x, not %#04x", what, u.name, i, u.nElems(),
			binary.LittleEndian.Uint16(out[2*i:]), binary.LittleEndian.Uint16(u.bf[2*i:]))
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i / 2
		}
	}
	return -1
}

// mustDecodeOwn runs our entry points in several ways.
func mustDecodeOwn(t *testing.T, m *ptx.Module, u *unit, v variant) {
	t.Helper()
	k := m.Kernels[Decode]
	v.own = v.seed%2 == 0
	out, _, err := decode(k, u, v)
	must(t, fmt.Sprintf("decode %+v", v), u, out, err)
	out, _, err = decodeTiles(m, u, v, 1+int(v.seed%3))
	must(t, fmt.Sprintf("decode_tiles %+v", v), u, out, err)
	out, _, err = decodePicked(m, u, v, 1+int(v.seed%3), allOf(u))
	must(t, fmt.Sprintf("decode_picked %+v", v), u, out, err)
}

// allOf picks all tiles of a unit.
func allOf(u *unit) *picks { return &picks{make([][2]uint16, u.nChunks()), []byte{1}} }

// forKernels runs a test on our kernel and on the official one. Each run gets a function that
// checks a unit's weights.
func forKernels(t *testing.T, test func(t *testing.T, mustDecode func(u *unit, v variant))) {
	t.Helper()
	t.Run("ours", func(t *testing.T) {
		m := ownModule(t)
		test(t, func(u *unit, v variant) { mustDecodeOwn(t, m, u, v) })
	})
	t.Run("official", func(t *testing.T) {
		k := officialKernel(t)
		test(t, func(u *unit, v variant) { mustDecodeOfficial(t, k, u, v.seed) })
	})
}

func mustDecodeOfficial(t *testing.T, k *ptx.Kernel, u *unit, seed uint64) {
	t.Helper()
	out, _, err := decode(k, u, variant{slack: Slack, seed: seed})
	must(t, "official", u, out, err)
}

func TestGoldenUnits(t *testing.T) {
	forKernels(t, func(t *testing.T, mustDecode func(*unit, variant)) {
		for i, u := range goldenUnits(t) {
			variants := []variant{{seed: uint64(i)}, {seed: uint64(i) + 1, skew: 1 + i%15}}
			if large := u.nElems() > 20000; large && testing.Short() {
				continue
			} else if large && os.Getenv("DF11_DEEP") == "" {
				variants = variants[i%2 : i%2+1]
			}
			for _, v := range variants {
				mustDecode(u, v)
			}
		}
	})
}

// nRandom returns how many random units a test takes: more with DF11_DEEP, fewer with -short.
func nRandom() int {
	switch {
	case os.Getenv("DF11_DEEP") != "":
		return 3000
	case testing.Short():
		return 30
	}
	return 100
}

func TestRandomUnits(t *testing.T) {
	forKernels(t, func(t *testing.T, mustDecode func(*unit, variant)) {
		for i := range nRandom() {
			v := variant{seed: uint64(i)}
			if i%3 == 0 {
				v.skew = 1 + i%13
			}
			mustDecode(randomUnit(t, uint64(i), 12000), v)
		}
	})
}

func TestLongCodes(t *testing.T) {
	m := ownModule(t)
	for n := 2; n <= 18; n++ {
		mustDecodeOwn(t, m, fibonacciUnit(t, n), variant{seed: uint64(n)})
	}
}

// TestHashes checks that decode.ptx was made from the sources in this folder.
func TestHashes(t *testing.T) {
	for _, name := range []string{"decode.cu", "tables.h", "device.h"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		want := "// " + name + " sha256 " + hex.EncodeToString(sum[:]) + "\n"
		if !strings.Contains(PTX(), want) {
			t.Errorf("decode.ptx was not made from this %s; run generate.sh", name)
		}
	}
}

// normalUnit has several chunks of weights like those of a trained model.
func normalUnit(t testing.TB, n int) *unit {
	t.Helper()
	return encode(t, "normal", plain.Normal(n, 1))
}

// TestPieces decodes ranges of chunks, as the verifier does when memory is short.
func TestPieces(t *testing.T) {
	forKernels(t, func(t *testing.T, mustDecode func(*unit, variant)) {
		u := normalUnit(t, 60000)
		for first := range u.nChunks() {
			for _, end := range []int{first + 1, min(first+3, u.nChunks()), u.nChunks()} {
				mustDecode(u.piece(first, end), variant{seed: uint64(first + end)})
			}
		}
	})
}

// mutants runs a kernel once for each barrier, without that barrier. It returns the lines of
// barriers that no run needed.
func mutants(t *testing.T, k *ptx.Kernel, u *unit, run func(*ptx.Kernel) ([]byte, ptx.Stats, error)) (unnoticed []int, n int) {
	t.Helper()
	for ; ; n++ {
		mutant, line, ok := k.Without("bar.sync", n)
		if !ok {
			return unnoticed, n
		}
		out, _, err := run(mutant)
		t.Logf("without the barrier of line %d: %v, weights right: %v", line, err, bytes.Equal(out, u.bf))
		if err == nil && bytes.Equal(out, u.bf) {
			unnoticed = append(unnoticed, line)
		}
	}
}

// Every barrier must be needed, and the interpreter must notice when one is missing.
func TestMutants(t *testing.T) {
	m, u := ownModule(t), normalUnit(t, 40000)
	// 0: any number except none
	for name, want := range map[string]int{Decode: 4, BuildTables: 0, DecodeTiles: 0, DecodePicked: 0} {
		lost, n := mutants(t, m.Kernels[name], u, func(k *ptx.Kernel) ([]byte, ptx.Stats, error) {
			switch name {
			case Decode:
				return decode(k, u, variant{own: true})
			case DecodePicked:
				return decodePicked(m.With(k), u, variant{}, 2, allOf(u))
			}
			return decodeTiles(m.With(k), u, variant{}, 2)
		})
		if len(lost) > 0 || n == 0 || want > 0 && n != want {
			t.Errorf("%s: %d barriers, not missed: lines %v", name, n, lost)
		}
	}
}

// Whatever the bytes are, our kernel must end and stay within its buffers.
func TestCorruptUnits(t *testing.T) {
	m := ownModule(t)
	for i := range uint64(nRandom() / 2) {
		u := randomUnit(t, i%20, 12000).spoil(rand.New(rand.NewPCG(i, 9)))
		endsWell(t, m, u, variant{seed: i}, fmt.Sprint("seed ", i))
	}
}

// endsWell checks that our entry points end on a unit, whatever its bytes are, and stay within its
// buffers.
func endsWell(t *testing.T, m *ptx.Module, u *unit, v variant, what string) {
	t.Helper()
	v.corrupt = true
	if _, _, err := decode(m.Kernels[Decode], u, v); err != nil {
		t.Errorf("decode, %s: %v", what, err)
	}
	if _, _, err := decodeTiles(m, u, v, 3); err != nil {
		t.Errorf("decode_tiles, %s: %v", what, err)
	}
	if _, _, err := decodePicked(m, u, v, 3, allOf(u)); err != nil {
		t.Errorf("decode_picked, %s: %v", what, err)
	}
}

// TestNoWordHasTwoWriters takes a unit whose codes all claim one length. If that length is large,
// windows have fewer codes than fit into the words of shared memory that they begin in. Then no
// thread may store such a word whole. The second tile begins after the first byte of a word.
func TestNoWordHasTwoWriters(t *testing.T) {
	m := ownModule(t)
	u := *normalUnit(t, 20000)
	u.luts, u.positions = bytes.Clone(u.luts), bytes.Clone(u.positions)
	u.positions[4] = u.positions[4]&^7 | 1
	for _, length := range []byte{1, 5, 8, 9, 12, 16, 21, 32} {
		copy(u.luts[len(u.luts)-256:], bytes.Repeat([]byte{length}, 256))
		endsWell(t, m, &u, variant{}, fmt.Sprintf("codes of %d bits", length))
	}
}

// The same must hold for positions that wrap around when something is added to them.
func TestHostilePositions(t *testing.T) {
	m := ownModule(t)
	u := normalUnit(t, 20000)
	for _, position := range []uint32{20001, 1<<31 - 1, 1 << 31, 1<<32 - 4097, 1<<32 - 4096, 1<<32 - 9, 1<<32 - 8, 1<<32 - 1} {
		for chunk := range u.nChunks() {
			bad := *u
			bad.positions = bytes.Clone(u.positions)
			binary.LittleEndian.PutUint32(bad.positions[4*chunk:], position)
			for skew := range 2 {
				endsWell(t, m, &bad, variant{skew: skew, steps: 1e6, own: skew == 0}, fmt.Sprintf("chunk %d at %d", chunk, position))
			}
		}
	}
}

// TestPicked decodes the tiles of picked owners, and wants all other weights left as they were.
func TestPicked(t *testing.T) {
	m, u := ownModule(t), normalUnit(t, 480000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		p := &picks{make([][2]uint16, u.nChunks()), make([]byte, 9)}
		for tile := range p.owners { // owner 0 is never picked, a tile at a border has two
			first := uint16(1 + 8*tile/len(p.owners))
			p.owners[tile] = [2]uint16{first, uint16(min(8, 1+(8*tile+1)/len(p.owners)))}
		}
		for range i {
			p.picked[1+rng.IntN(8)] = 1
		}
		grid := []int{1, 2, 7, u.nChunks()}[i%4]
		out, stats, err := decodePicked(m, u, variant{seed: uint64(i)}, grid, p)
		if err != nil {
			t.Fatal(err)
		}
		decoded := 0
		for tile := range u.nChunks() {
			from, to := 2*u.position(tile), 2*u.position(tile+1)
			want := bytes.Repeat([]byte{0xa5}, to-from)
			if p.has(tile) {
				want, decoded = u.bf[from:to], decoded+(to-from)/2
			}
			if !bytes.Equal(out[from:to], want) {
				t.Fatalf("%d blocks, %v: tile %d, picked %v, is wrong", grid, p.picked, tile, p.has(tile))
			}
		}
		slots := 32 * stats.WarpInstructions
		t.Logf("%d blocks: %d of %d weights, %d lane slots", grid, decoded, u.nElems(), slots)
		if limit := int64(28*decoded + 512*100*grid); slots > limit {
			t.Errorf("%d lane slots for %d weights in %d blocks; %d were enough", slots, decoded, grid, limit)
		}
	}
}

// TestCost limits what our kernel executes. It counts instructions; only a GPU shows the speed.
func TestCost(t *testing.T) {
	m := ownModule(t)
	u := normalUnit(t, 120000)
	_, tiles, err := decodeTiles(m, u, variant{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	slots := float64(tiles.WarpInstructions) * 32 / float64(u.nElems())
	t.Logf("decode_tiles: %.1f lane slots a weight, %.1f barriers a tile", slots, float64(tiles.Barriers)/float64(u.nChunks()))
	if slots > 28 {
		t.Errorf("%.1f lane slots a weight; 28 were enough", slots)
	}
	cost := func(name string, k *ptx.Kernel) float64 {
		u := normalUnit(t, 120000)
		_, stats, err := decode(k, u, variant{slack: Slack})
		if err != nil {
			t.Fatal(err)
		}
		slots := float64(stats.WarpInstructions) * 32 / float64(u.nElems())
		t.Logf("%s with the official launch: %.1f lane slots a weight, %.1f barriers a tile", name, slots, float64(stats.Barriers)/float64(u.nChunks()))
		return slots
	}
	if ours := cost("decode", m.Kernels[Decode]); ours > 48 {
		t.Errorf("decode: %.1f lane slots a weight; 48 were enough", ours)
	}
	t.Run("official", func(t *testing.T) { cost("the official decode", officialKernel(t)) })
}

// The text must ask for the PTX version and the compute capability that the constants name.
func TestHeader(t *testing.T) {
	if want := fmt.Sprintf("\n.version %s\n.target sm_%d\n", Version, Target); !strings.Contains(PTX(), want) {
		t.Errorf("the text has no %q", want)
	}
}
