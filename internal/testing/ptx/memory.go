package ptx

import "fmt"

// An address names a buffer above addressBits and an offset in the buffer below. Buffers begin in
// the middle of the range of offsets, so an address a little before a buffer still belongs to it.
const (
	addressBits = 40
	middle      = 1 << (addressBits - 1)
)

// Memory is the global memory of launches: buffers, each with exact bounds. It isn't safe for
// concurrent use.
type Memory struct {
	buffers []region
}

// Input adds a read-only buffer, which it borrows, and returns its address, skew bytes past a
// multiple of 256.
func (m *Memory) Input(name string, bytes []byte, skew int) uint64 {
	base := uint64(len(m.buffers)+1)<<addressBits + middle + uint64(skew)
	m.buffers = append(m.buffers, region{name: name, bytes: bytes, base: base})
	return base
}

// Output adds a buffer that kernels may write.
func (m *Memory) Output(name string, bytes []byte, skew int) uint64 {
	address := m.Input(name, bytes, skew)
	m.buffers[len(m.buffers)-1].marks = make([]mark, len(bytes))
	return address
}

// beginLaunch begins a new interval. A launch sees everything that earlier ones wrote.
func (m *Memory) beginLaunch() {
	for i := range m.buffers {
		m.buffers[i].beginInterval()
	}
}

func (m *Memory) find(address uint64) (*region, error) {
	i := address>>addressBits - 1
	if i >= uint64(len(m.buffers)) {
		return nil, fmt.Errorf("address %#x is in no buffer", address)
	}
	return &m.buffers[i], nil
}

// region is a buffer of global memory, or a block's shared memory. It watches for races: within an
// interval, no byte that one thread writes may be touched by another.
type region struct {
	name     string
	bytes    []byte
	base     uint64 // address of the first byte
	marks    []mark // one per byte; nil for a read-only region
	interval stamp
	// a byte must have been written since this interval to be read; 0: read anything
	begin stamp
}

// mark records who touched a byte last.
type mark struct{ writer, reader stamp }

// stamp holds an interval in its upper half and a thread in its lower half.
type stamp uint64

const (
	intervalStep stamp = 1 << 32
	manyReaders  stamp = intervalStep - 1 // instead of a thread
)

func (s stamp) thread() stamp { return s % intervalStep }

// isOther reports whether another thread left the stamp, in the same interval as mine.
func (s stamp) isOther(mine stamp) bool { return s != mine && s/intervalStep == mine/intervalStep }

func (r *region) beginInterval() { r.interval += intervalStep }

// find returns the offset of an access of n bytes.
func (r *region) find(address uint64, n int) (int, error) {
	at := address - r.base
	if at > uint64(len(r.bytes)) || uint64(n) > uint64(len(r.bytes))-at {
		return 0, fmt.Errorf("%d bytes at %d of %s, which has %d", n, int64(at), r.name, len(r.bytes))
	}
	if address&uint64(n-1) != 0 {
		return 0, fmt.Errorf("%d bytes at %d of %s are not aligned", n, at, r.name)
	}
	return int(at), nil
}

// load fills values with elements of size bytes.
func (r *region) load(address uint64, size int, values []uint64, thread int) error {
	n := size * len(values)
	at, err := r.find(address, n)
	if err != nil {
		return err
	}
	if r.marks != nil {
		mine := r.interval | stamp(thread)
		for i := at; i < at+n; i++ {
			m := &r.marks[i]
			if m.writer.isOther(mine) {
				return fmt.Errorf("race: byte %d of %s was written by thread %d", i, r.name, m.writer.thread())
			}
			if m.writer < r.begin {
				return fmt.Errorf("byte %d of %s was never written", i, r.name)
			}
			if m.reader.isOther(mine) {
				m.reader = r.interval | manyReaders
			} else {
				m.reader = mine
			}
		}
	}
	for i := range values {
		values[i] = element(r.bytes[at+i*size:], size)
	}
	return nil
}

// store writes values as elements of size bytes.
func (r *region) store(address uint64, size int, values []uint64, thread int) error {
	n := size * len(values)
	at, err := r.find(address, n)
	if err != nil {
		return err
	}
	if r.marks == nil {
		return fmt.Errorf("write to %s", r.name)
	}
	mine := r.interval | stamp(thread)
	for i := at; i < at+n; i++ {
		m := &r.marks[i]
		if m.writer.isOther(mine) {
			return fmt.Errorf("race: byte %d of %s was written by thread %d", i, r.name, m.writer.thread())
		}
		if m.reader.isOther(mine) {
			return fmt.Errorf("race: byte %d of %s was read by another thread", i, r.name)
		}
		m.writer = mine
	}
	for i, v := range values {
		putElement(r.bytes[at+i*size:], size, v)
	}
	return nil
}

// element reads a little-endian number of size bytes.
func element(b []byte, size int) (v uint64) {
	for i := range size {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// putElement writes a little-endian number of size bytes.
func putElement(b []byte, size int, v uint64) {
	for i := range size {
		b[i] = uint8(v >> (8 * i))
	}
}
