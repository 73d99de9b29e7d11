package bench

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"testing"
)

// Weights are made like trained ones: normal, with a spread of its own for every layer and every row, and few outliers.
const (
	rowElems    = 4096
	layerElems  = 16 << 20
	outlierMask = 1<<14 - 1 // one weight in 2^14
)

// makeWeights makes nBytes, a multiple of 8192, of BF16 weights, the same on every machine.
func makeWeights(nBytes int64) []byte {
	p := make([]byte, nBytes)
	rows := int(nBytes / (2 * rowElems))
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for row := w; row < rows; row += workers {
				makeRow(p[2*rowElems*row:][:2*rowElems], row)
			}
		})
	}
	wg.Wait()
	return p
}

func makeRow(p []byte, row int) {
	layer := rand.New(rand.NewPCG(uint64(row/(layerElems/rowElems)), 1))
	rng := rand.New(rand.NewPCG(uint64(row), 2))
	sigma := 0.02 * math.Exp(0.25*layer.NormFloat64()) * math.Exp(0.15*rng.NormFloat64())
	for ; len(p) > 0; p = p[2:] {
		v := float32(sigma * rng.NormFloat64())
		if rng.Uint64()&outlierMask == 0 {
			v *= 12
		}
		binary.LittleEndian.PutUint16(p, uint16(math.Float32bits(v)>>16))
	}
}

// TestWeights wants the same weights for any number of cores, and exponents as trained ones have them.
func TestWeights(t *testing.T) {
	const n = 1 << 20
	p := makeWeights(n)
	old := runtime.GOMAXPROCS(1)
	again := makeWeights(n)
	runtime.GOMAXPROCS(old)
	if !reflect.DeepEqual(p, again) {
		t.Error("the weights depend on the number of cores")
	}
	used := map[byte]bool{}
	for i := 0; i < len(p); i += 2 {
		used[byte(binary.LittleEndian.Uint16(p[i:])>>7)] = true
	}
	if len(used) < 16 || len(used) > 40 {
		t.Errorf("%d different exponents", len(used))
	}
}
