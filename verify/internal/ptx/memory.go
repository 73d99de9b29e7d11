package ptx

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// addressBits is how much of an address is the place in its buffer, which begins in the middle of that
// range: what lies a little before a buffer is still seen to belong to it.
const (
	addressBits = 40
	middle      = 1 << (addressBits - 1)
)

// Memory is the global memory of launches: buffers, each with exact bounds. It is not safe for
// concurrent use.
type Memory struct {
	buffers []buffer
}

type buffer struct {
	name     string
	bytes    []byte
	skew     uint64
	writers  []uint32 // per byte, 1 + the thread that wrote it in this launch; nil: read-only
	anything bool     // writers has entries other than 0
}

// Input adds a read-only buffer and returns its address. The bytes are borrowed. The address is
// skew bytes past a multiple of 256.
func (m *Memory) Input(name string, bytes []byte, skew int) uint64 {
	m.buffers = append(m.buffers, buffer{name: name, bytes: bytes, skew: uint64(skew)})
	return uint64(len(m.buffers))<<addressBits + middle + uint64(skew)
}

// Output adds a buffer that kernels may write.
func (m *Memory) Output(name string, bytes []byte, skew int) uint64 {
	address := m.Input(name, bytes, skew)
	m.buffers[len(m.buffers)-1].writers = make([]uint32, len(bytes))
	return address
}

// launch forgets who wrote what: launches come one after the other.
func (m *Memory) launch() {
	for i := range m.buffers {
		b := &m.buffers[i]
		if b.anything {
			clear(b.writers)
			b.anything = false
		}
	}
}

// find gives the buffer and the place in it of an access of n bytes.
func (m *Memory) find(address uint64, n int) (*buffer, int, error) {
	i := address>>addressBits - 1
	if i >= uint64(len(m.buffers)) {
		return nil, 0, fmt.Errorf("address %#x is in no buffer", address)
	}
	b := &m.buffers[i]
	off := address&(1<<addressBits-1) - middle - b.skew
	if off > uint64(len(b.bytes)) || uint64(n) > uint64(len(b.bytes))-off {
		return nil, 0, fmt.Errorf("%d bytes at %d of %s, which has %d", n, int64(off), b.name, len(b.bytes))
	}
	if address&uint64(n-1) != 0 {
		return nil, 0, fmt.Errorf("%d bytes at %d of %s are not aligned", n, off, b.name)
	}
	return b, int(off), nil
}

// load appends the elements of an access to into.
func (m *Memory) load(address uint64, size int, into []uint64, thread uint32) error {
	b, off, err := m.find(address, size*len(into))
	if err != nil {
		return err
	}
	if b.anything {
		for _, w := range b.writers[off : off+size*len(into)] {
			if w != 0 && w != thread+1 {
				return fmt.Errorf("race: byte %d of %s was written by thread %d", off, b.name, w-1)
			}
		}
	}
	for i := range into {
		into[i] = element(b.bytes[off+i*size:], size)
	}
	return nil
}

func (m *Memory) store(address uint64, size int, values []uint64, thread uint32) error {
	b, off, err := m.find(address, size*len(values))
	if err != nil {
		return err
	}
	if b.writers == nil {
		return fmt.Errorf("write to %s", b.name)
	}
	b.anything = true
	for i := range size * len(values) {
		if w := &b.writers[off+i]; *w != 0 && *w != thread+1 {
			return fmt.Errorf("race: byte %d of %s was written by thread %d", off+i, b.name, *w-1)
		} else {
			*w = thread + 1
		}
	}
	for i, v := range values {
		putElement(b.bytes[off+i*size:], size, v)
	}
	return nil
}

func element(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func putElement(b []byte, size int, v uint64) {
	switch size {
	case 1:
		b[0] = uint8(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// sharedMemory is the shared memory of a block with, per byte, who touched it since the last barrier.
type sharedMemory struct {
	bytes   []byte
	writes  []uint32 // interval between barriers, and the thread
	reads   []uint32 // the same; manyReaders as the thread when there are several
	current uint32   // the interval, in place
}

const (
	threadBits  = 11
	manyReaders = 1<<threadBits - 1
)

// barrier starts a new interval.
func (s *sharedMemory) barrier() error {
	s.current += 1 << threadBits
	if s.current == 0 {
		return errors.New("too many barriers")
	}
	return nil
}

func (s *sharedMemory) check(address uint64, n int) error {
	if address > uint64(len(s.bytes)) || uint64(n) > uint64(len(s.bytes))-address {
		return fmt.Errorf("%d bytes at %d of shared memory, which has %d", n, int64(address), len(s.bytes))
	}
	if address&uint64(n-1) != 0 {
		return fmt.Errorf("%d bytes at %d of shared memory are not aligned", n, address)
	}
	return nil
}

func (s *sharedMemory) load(address uint64, size int, into []uint64, thread uint32) error {
	n := size * len(into)
	if err := s.check(address, n); err != nil {
		return err
	}
	mine := s.current | thread
	for i := int(address); i < int(address)+n; i++ {
		if w := s.writes[i]; w != mine && w&^manyReaders == s.current {
			return fmt.Errorf("race: byte %d of shared memory was written by thread %d", i, w&manyReaders)
		}
		switch r := s.reads[i]; {
		case r&^manyReaders != s.current:
			s.reads[i] = mine
		case r != mine:
			s.reads[i] = s.current | manyReaders
		}
	}
	for i := range into {
		into[i] = element(s.bytes[int(address)+i*size:], size)
	}
	return nil
}

func (s *sharedMemory) store(address uint64, size int, values []uint64, thread uint32) error {
	n := size * len(values)
	if err := s.check(address, n); err != nil {
		return err
	}
	mine := s.current | thread
	for i := int(address); i < int(address)+n; i++ {
		if w := s.writes[i]; w != mine && w&^manyReaders == s.current {
			return fmt.Errorf("race: byte %d of shared memory was written by thread %d", i, w&manyReaders)
		}
		if r := s.reads[i]; r != mine && r&^manyReaders == s.current {
			return fmt.Errorf("race: byte %d of shared memory was read by another thread", i)
		}
		s.writes[i] = mine
	}
	for i, v := range values {
		putElement(s.bytes[int(address)+i*size:], size, v)
	}
	return nil
}
