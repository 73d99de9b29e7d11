//go:build !nogpu

package verify

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/golden"
	"github.com/df11-convert/df11-convert/verify/kernel"
)

// TestDumpPieces writes pieces of golden units as a slot holds them, with what they decode to and how they are launched, for an
// emulator of a GPU's machine code: .ci/deep/30-kernel.sh runs it. DF11_DUMP is the folder.
func TestDumpPieces(t *testing.T) {
	dir := os.Getenv("DF11_DUMP")
	if dir == "" {
		t.Skip("DF11_DUMP names no folder to write to")
	}
	rng := rand.New(rand.NewPCG(99, 7))
	for _, g := range golden.Units(t) {
		if !g.Sound() {
			continue
		}
		s := storedGolden(g)
		dumpPieces(t, filepath.Join(dir, "whole", g.Name), s, maxSlot)
		dumpPieces(t, filepath.Join(dir, "whole", g.Name+"-small"), s, minSlot)
		for i := range 6 {
			bad := s.clone()
			for _, b := range [][]byte{bad.stream, bad.gaps, bad.luts} {
				for range rng.IntN(4) {
					b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
				}
			}
			dumpPieces(t, filepath.Join(dir, "corrupt", fmt.Sprint(g.Name, "-", i)), bad, minSlot)
		}
	}
}

// dumpPieces writes three files for each of the first pieces of a unit. A unit whose structure is refused has none.
func dumpPieces(t *testing.T, path string, s *stored, slot int) {
	t.Helper()
	u, err := s.open()
	if err != nil {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, p := range cutPieces(u, slot)[:min(2, len(cutPieces(u, slot)))] {
		b := make([]byte, p.size)
		if err := p.fill(t.Context(), u, b, 1); err != nil {
			t.Fatal(err)
		}
		for j := p.out; j < p.size; j++ {
			b[j] = poison
		}
		corrupt := 0
		if filepath.Base(filepath.Dir(path)) == "corrupt" {
			corrupt = 1
		}
		meta := fmt.Sprintf("nLUTs %d\nnStream %d\nnElems %d\nnChunks %d\ntables %d\nluts %d\nstream %d\ngaps %d\npositions %d\nsm %d\nout %d\n",
			p.nLUTs, p.nStream, p.nElems, p.n, p.tables, p.luts, p.stream, p.gaps, p.positions, p.sm, p.out) +
			fmt.Sprintf("blocks %d\nsharedTiles %d\nsharedOfficial %d\nsharedBuild %d\ncorrupt %d\n",
				p.n, kernel.TilesShared(p.widest), kernel.OfficialShared(p.widest), kernel.BuildShared, corrupt)
		for name, content := range map[string][]byte{"bin": b, "want": s.source[2*p.elem : 2*(p.elem+int64(p.nElems))], "meta": []byte(meta)} {
			if err := os.WriteFile(fmt.Sprintf("%s-%d.%s", path, i, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
