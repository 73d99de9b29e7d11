package verify_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/verify"
)

// weights returns n BF16 weights, little-endian.
func weights(n int) []byte {
	var out []byte
	for i := range n {
		w := float32(0.02 * math.Sin(float64(i*i)))
		out = binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(w)>>16))
	}
	return out
}

// array is memory with io.WriterAt, as large as the encoder said.
type array []byte

func (a array) WriteAt(p []byte, off int64) (int, error) { return copy(a[off:], p), nil }

// encoded returns the six arrays of one tensor.
func encoded(bf16 []byte) (map[string]array, error) {
	c, err := encoder.NewCounter([]int64{int64(len(bf16) / 2)})
	if err != nil {
		return nil, err
	}
	c.Add(0, bf16)
	unit, err := c.Finish()
	if err != nil {
		return nil, err
	}
	arrays := map[string]array{}
	for _, t := range unit.Tensors() {
		arrays[t.Name] = make(array, t.NBytes)
	}
	dst := func(name string) io.WriterAt { return arrays[name] }
	return arrays, unit.Encode(context.Background(), bytes.NewReader(bf16), dst, 2)
}

// Encode a tensor in memory, decode the stored arrays, and compare all 16 bits of every weight.
func Example() {
	bf16 := weights(100_000)
	arrays, err := encoded(bf16)
	if err != nil {
		fmt.Println(err)
		return
	}
	unit, err := verify.Open(verify.ArraysAt(func(name string) *io.SectionReader {
		a := arrays[name]
		return io.NewSectionReader(bytes.NewReader(a), 0, int64(len(a)))
	}), []int64{100_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = unit.Compare(context.Background(), bytes.NewReader(bf16), verify.CompareOptions{})
	fmt.Println(unit.NElems(), "weights compared, error:", err)
	// Output: 100000 weights compared, error: <nil>
}

// A flipped bit is found at its place.
func ExampleUnit_Compare() {
	bf16 := weights(100_000)
	arrays, err := encoded(bf16)
	if err != nil {
		fmt.Println(err)
		return
	}
	arrays["sign_mantissa"][777] ^= 1
	unit, err := verify.Open(verify.ArraysAt(func(name string) *io.SectionReader {
		a := arrays[name]
		return io.NewSectionReader(bytes.NewReader(a), 0, int64(len(a)))
	}), []int64{100_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = unit.Compare(context.Background(), bytes.NewReader(bf16), verify.CompareOptions{})
	var wrong *verify.MismatchError
	fmt.Println(errors.As(err, &wrong), wrong.Elem)
	// Output: true 777
}
