package world

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Tensor is a tensor of a safetensors file. DType and Shape are what the header says, right or
// wrong.
type Tensor struct {
	Name, DType string
	Shape       []int64
	Data        []byte
}

// Safetensors returns a safetensors file of tensors in this order. A reader may or may not accept
// it.
func Safetensors(tensors []Tensor) []byte {
	members, data := []string{`"__metadata__":{"format":"pt"}`}, []byte(nil)
	for _, x := range tensors {
		shape, _ := json.Marshal(append([]int64{}, x.Shape...)) //nolint:errchkjson // a list of numbers
		begin := len(data)
		data = append(data, x.Data...)
		members = append(members, fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`,
			x.Name, x.DType, shape, begin, len(data)))
	}
	header := "{" + strings.Join(members, ",") + "}"
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), []byte(header), data)
}

// A Checkpoint is a small model under construction.
type Checkpoint struct {
	Tensors []Tensor
	rng     *rand.Rand
}

// NewCheckpoint returns a checkpoint without tensors. Its weights depend on the seed.
func NewCheckpoint(seed uint64) *Checkpoint {
	return &Checkpoint{rng: rand.New(rand.NewPCG(seed, 1))}
}

// Add adds a tensor of normal numbers. F32 values are exact in BF16, except for the first inexact
// ones.
func (c *Checkpoint) Add(name, dtype string, inexact int, shape ...int64) {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	var b []byte
	for i := range n {
		bits := math.Float32bits(float32(0.05*c.rng.NormFloat64())) &^ 0xffff
		switch {
		case dtype == "BF16" || dtype == "F16":
			b = binary.LittleEndian.AppendUint16(b, uint16(bits>>16))
			continue
		case dtype == "F8_E4M3" || dtype == "I8":
			b = append(b, byte(bits>>24))
			continue
		case int(i) < inexact:
			bits |= 1
		}
		b = binary.LittleEndian.AppendUint32(b, bits)
	}
	c.Tensors = append(c.Tensors, Tensor{name, dtype, shape, b})
}

// Block adds the tensors of one block. A module whose name ends in "norm" gets a one-dimensional
// weight. Any other module gets a two-dimensional weight and a bias.
func (c *Checkpoint) Block(prefix string, modules ...string) {
	for _, m := range modules {
		if strings.HasSuffix(m, "norm") {
			c.Add(prefix+m+".weight", "BF16", 0, 32)
			continue
		}
		c.Add(prefix+m+".weight", "BF16", 0, 32, 48)
		c.Add(prefix+m+".bias", "BF16", 0, 32)
	}
}

// Again adds the last tensor again under another name.
func (c *Checkpoint) Again(name string) {
	last := c.Tensors[len(c.Tensors)-1]
	last.Name = name
	c.Tensors = append(c.Tensors, last)
}

// File returns the checkpoint as one safetensors file.
func (c *Checkpoint) File() []byte { return Safetensors(c.Tensors) }
