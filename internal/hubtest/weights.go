package hubtest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strings"
	"sync"
)

// tensor is one BF16 weight of a generated model. Its bytes are a function of seed and name alone,
// so that any range can be read at any time.
type tensor struct {
	name  string
	shape []int
	seed  uint64
	std   float64 // of the whole tensor; 0 is a norm weight near 1
	same  string  // name of the tensor whose bytes these are, or empty
}

// suffix is the tensor's name below its layer.
func (t tensor) suffix() string {
	parts := strings.SplitN(t.name, ".", 4)
	if len(parts) == 4 && parts[1] == "layers" {
		return parts[3]
	}
	return t.name
}

func (t tensor) nElems() int64 {
	n := int64(1)
	for _, d := range t.shape {
		n *= int64(d)
	}
	return n
}

func (t tensor) nBytes() int64 { return 2 * t.nElems() }

// blockElems is the number of weights that one random stream makes.
const blockElems = 2048

// normals holds the quantiles of the standard normal distribution: a random index is a normal
// number without any computation.
var normals = func() [4096]float32 {
	var t [4096]float32
	for i := range t {
		p := (float64(i) + 0.5) / float64(len(t))
		t[i] = float32(math.Sqrt2 * math.Erfinv(2*p-1))
	}
	return t
}()

// ReadAt fills p with the little-endian BF16 bytes from off on.
func (t tensor) ReadAt(p []byte, off int64) (int, error) {
	var block [2 * blockElems]byte
	n := 0
	for n < len(p) && off < t.nBytes() {
		i := off / int64(len(block))
		nElems := min(blockElems, t.nElems()-i*blockElems)
		t.fill(block[:2*nElems], uint64(i))
		m := copy(p[n:], block[off-i*int64(len(block)):2*nElems])
		n += m
		off += int64(m)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// fill makes block i. Weights look trained: the rows of a matrix have scales of their own, the
// mantissas are as good as random, and single outliers stick out.
func (t tensor) fill(p []byte, i uint64) {
	key := t.key()
	rng := random(key ^ i*0xd1342543de82ef95)
	if t.std == 0 {
		fillNorm(p, &rng)
		return
	}
	cols := int64(t.shape[len(t.shape)-1])
	elem := int64(i) * blockElems
	for len(p) > 0 {
		row, col := elem/cols, elem%cols
		n := min(int64(len(p)/2), cols-col)
		fillRow(p[:2*n], &rng, float32(t.std*rowScale(key, row)))
		p, elem = p[2*n:], elem+n
	}
}

// key is a number that belongs to seed and name.
func (t tensor) key() uint64 {
	name := t.name
	if t.same != "" {
		name = t.same
	}
	key := random(t.seed)
	for _, c := range []byte(name) {
		key = random(uint64(key) ^ uint64(c))
		key.next()
	}
	return uint64(key)
}

// random is the generator SplitMix64, small enough for the compiler to inline: making weights must
// not be slower than sending them.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// rowScale is log-normal around 1 and depends on the row only.
func rowScale(key uint64, row int64) float64 {
	r := random(key ^ uint64(row)<<20)
	return math.Exp(0.3 * float64(normals[r.next()>>52]))
}

// outlierMask makes one weight in 4096 an outlier.
const outlierMask = 0xfff

func fillRow(p []byte, rng *random, scale float32) {
	for ; len(p) >= 4; p = p[4:] {
		r := rng.next()
		binary.LittleEndian.PutUint32(p,
			uint32(weight(uint32(r), scale))|uint32(weight(uint32(r>>32), scale))<<16)
	}
	if len(p) == 2 {
		binary.LittleEndian.PutUint16(p, weight(uint32(rng.next()), scale))
	}
}

// weight makes one BF16 number of 32 random bits: 12 choose the quantile, the others blur it so
// that the mantissa is as random as a trained one. The conversions keep compilers from fusing
// operations, which would round differently from machine to machine.
func weight(r uint32, scale float32) uint16 {
	v := normals[r>>20] * scale * (1 + float32(float32(int32(r<<12)>>20)*(1.0/16384)))
	if r&outlierMask == 0 {
		v *= 12
	}
	return bf16(v)
}

// bf16 rounds to nearest even.
func bf16(v float32) uint16 {
	b := math.Float32bits(v)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// fillNorm makes the weights of a norm layer: around 1, now and then far off.
func fillNorm(p []byte, rng *random) {
	for ; len(p) >= 2; p = p[2:] {
		r := rng.next()
		v := 1 + float32(0.15*normals[r>>52])
		if r&0xff == 0 {
			v *= 4
		}
		binary.LittleEndian.PutUint16(p, bf16(v))
	}
}

// shard is one safetensors file of a generated model. Its layout is written here, apart from the
// converter's own writer, so that tests do not compare that writer with itself.
type shard struct {
	path    string
	header  []byte // length, JSON, padding
	tensors []tensor
	starts  []int64 // first byte of each tensor in the file
	size    int64
	repeat  []byte        // fills the file after the header in place of the tensors, when not empty
	kept    func() []byte // the whole file, made at the first call; nil: nothing is kept
	sum     func() string // made at the first call
}

// newShard lays the tensors out in the given order.
func newShard(path string, tensors []tensor) *shard {
	s := &shard{path: path, tensors: tensors}
	var text strings.Builder
	text.WriteString(`{"__metadata__":{"format":"pt"}`)
	var off int64
	for _, t := range tensors {
		shape, _ := json.Marshal(t.shape)
		fmt.Fprintf(&text, `,%q:{"dtype":"BF16","shape":%s,"data_offsets":[%d,%d]}`, t.name, shape,
			off, off+t.nBytes())
		s.starts = append(s.starts, off)
		off += t.nBytes()
	}
	text.WriteString("}")
	text.WriteString(strings.Repeat(" ", (8-text.Len()%8)%8))
	s.header = binary.LittleEndian.AppendUint64(nil, uint64(text.Len()))
	s.header = append(s.header, text.String()...)
	for i := range s.starts {
		s.starts[i] += int64(len(s.header))
	}
	s.size = int64(len(s.header)) + off
	s.sum = sync.OnceValue(func() string {
		sum, _ := sumBody(s, s.size)
		return sum
	})
	return s
}

// keep makes the first reader of the weights make all of them, for everyone who reads later.
func (s *shard) keep() {
	s.kept = sync.OnceValue(func() []byte {
		p := make([]byte, s.size)
		_, _ = s.generate(p, 0)
		return p
	})
}

// sha256 is the hash of the file, for hashBody.
func (s *shard) sha256() string { return s.sum() }

// ReadAt reads any range of the file.
func (s *shard) ReadAt(p []byte, off int64) (int, error) {
	if s.kept == nil || off+int64(len(p)) <= int64(len(s.header)) {
		return s.generate(p, off)
	}
	n := copy(p, s.kept()[min(off, s.size):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// generate makes any range of the file.
func (s *shard) generate(p []byte, off int64) (int, error) {
	n := 0
	if off < int64(len(s.header)) {
		n = copy(p, s.header[off:])
	}
	for len(s.repeat) > 0 && n < len(p) && off+int64(n) < s.size {
		at := off + int64(n) - int64(len(s.header))
		n += copy(p[n:min(int64(len(p)), s.size-off)], s.repeat[at%int64(len(s.repeat)):])
	}
	i := max(0, sort.Search(len(s.starts),
		func(i int) bool { return s.starts[i] > off+int64(n) })-1)
	for ; n < len(p) && i < len(s.tensors); i++ {
		t, at := s.tensors[i], off+int64(n)-s.starts[i]
		m := min(int64(len(p)-n), t.nBytes()-at)
		if m <= 0 {
			continue
		}
		if _, err := t.ReadAt(p[n:n+int(m)], at); err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		n += int(m)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
