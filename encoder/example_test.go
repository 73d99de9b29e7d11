package encoder_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/df11-convert/df11-convert/encoder"
)

// memory is an io.WriterAt of a fixed size.
type memory []byte

func (m memory) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }

// Two passes over the same bytes: the first counts exponents and knows every size, the second writes
// the six arrays. Both may run on any number of workers.
func Example() {
	const n = 1 << 20
	var bf16 []byte // little-endian, as in a safetensors file
	for i := range n {
		w := float32(0.02 * math.Sin(float64(i*i)))
		bf16 = binary.LittleEndian.AppendUint16(bf16, uint16(math.Float32bits(w)>>16))
	}
	counter, err := encoder.NewCounter([]int64{n / 4, 3 * n / 4}) // two tensors of one unit
	if err != nil {
		fmt.Println(err)
		return
	}
	counter.Add(0, bf16)
	unit, err := counter.Finish()
	if err != nil {
		fmt.Println(err) // an *UnsupportedError: the unit stays in BF16
		return
	}
	arrays, total := map[string]memory{}, int64(0)
	for _, t := range unit.Tensors() {
		arrays[t.Name] = make(memory, t.NBytes)
		total += t.NBytes
	}
	err = unit.Encode(context.Background(), bytes.NewReader(bf16),
		func(name string) io.WriterAt { return arrays[name] }, 4)
	fmt.Printf("%d%% of the size, error: %v\n", 100*total/int64(len(bf16)), err)
	// Output: 64% of the size, error: <nil>
}
