package safetensors

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"sync/atomic"

	"github.com/df11-convert/df11-convert/internal/streams"
)

// Limits of headers. For the reasons, see docs/format.md §16.
const (
	// the official crate's limit on one header; here all headers of a model share it
	maxHeaderBytes  = 100_000_000
	MaxTensors      = 200_000 // of a model
	maxRank         = 16      // dimensions of a tensor
	MaxNameBytes    = 512     // of a tensor's name
	maxMetadataKeys = 4096    // of a file
	maxString       = 16 << 20
)

// lengthBytes is the size of the length field in front of the header JSON (docs/format.md §11).
const lengthBytes = 8

// metadataKey names the member of a header that isn't a tensor.
const metadataKey = "__metadata__"

// Tensor is one entry of a header.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64 // empty for a scalar
	Begin int64   // first byte, relative to the data start
	End   int64   // byte after the last
}

// NElems returns the number of elements. It is exact for tensors of a parsed header or a layout.
func (t Tensor) NElems() int64 {
	n := int64(1)
	for _, dim := range t.Shape {
		n *= dim
	}
	return n
}

// NBytes returns the number of bytes that the tensor takes in the file.
func (t Tensor) NBytes() int64 { return t.End - t.Begin }

// MetadataEntry is one key of the header's "__metadata__" member.
type MetadataEntry struct{ Key, Value string }

// Header is the header of one file, parsed or to be written. It says where every byte is.
type Header struct {
	Metadata []MetadataEntry // in header order; nil without "__metadata__"
	Tensors  []Tensor        // in header order
	// the header JSON exactly as stored, with padding, without the length
	Raw []byte

	byName map[string]int // index in Tensors
}

// DataStart returns the offset in the file of the first byte of tensor data.
func (h *Header) DataStart() int64 { return lengthBytes + int64(len(h.Raw)) }

// Size returns the size of the file.
func (h *Header) Size() int64 {
	end := int64(0)
	for _, t := range h.Tensors {
		end = max(end, t.End)
	}
	return h.DataStart() + end
}

// Bytes returns the file up to its data: the length and the header JSON.
func (h *Header) Bytes() []byte {
	return append(binary.LittleEndian.AppendUint64(make([]byte, 0, h.DataStart()),
		uint64(len(h.Raw))), h.Raw...)
}

// Lookup finds a tensor by name.
func (h *Header) Lookup(name string) (Tensor, bool) {
	i, ok := h.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return h.Tensors[i], true
}

// ByOffset returns the tensors in the order of their data. An empty tensor comes before the tensor
// at the same offset.
func (h *Header) ByOffset() []Tensor {
	list := slices.Clone(h.Tensors)
	slices.SortStableFunc(list, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
	})
	return list
}

// headerSize returns the length of the header JSON from the first 8 bytes of a file of fileSize
// bytes. It checks the length against the format's limit and the file, so that the caller can
// allocate it.
func headerSize(first8 []byte, fileSize int64) (nBytes int64, err error) {
	if len(first8) < lengthBytes || fileSize < lengthBytes+2 {
		return 0, fail(ErrTooShort, "", "%d bytes", fileSize)
	}
	n := binary.LittleEndian.Uint64(first8)
	switch most := uint64(fileSize - lengthBytes); {
	case n < 2 || n > most:
		return 0, fail(ErrHeaderLength, "", "%d bytes, of 2 to %d", n, min(maxHeaderBytes, most))
	case n > maxHeaderBytes:
		return 0, fail(ErrLimit, "", "a header of %d bytes, of at most %d", n, maxHeaderBytes)
	}
	return int64(n), nil
}

// FirstRead is the size of the first read of a file. Most headers fit into it.
const FirstRead = 64 << 10

// ReadHeader reads and parses the header of a file of fileSize bytes. It reads FirstRead bytes,
// then the rest of a longer header.
func ReadHeader(r io.ReaderAt, fileSize int64) (*Header, error) {
	return new(Headers).Read(r, fileSize)
}

// Headers limits the headers of one model: together, its files may take no more memory than one
// header may. The zero value is ready to use. Goroutines may share it.
type Headers struct {
	// Memory limits what headers, and all that is later known of their tensors, take by
	// [TableBytes]; 0 means no limit.
	Memory int64

	nBytes, nTensors atomic.Int64
}

// TableBytes returns about how much memory a program needs for headers of nBytes with nTensors, and
// for its own tables of these tensors. It was measured with 10,000 tensors. Longer headers cost
// three times what they have more.
func TableBytes(nBytes, nTensors int64) int64 {
	const each, usual = 1200, 150 // bytes in tables, and in a header
	return each*nTensors + 3*max(0, nBytes-usual*nTensors)
}

// checkMemory refuses the headers so far if their tables don't fit the budget.
func (m *Headers) checkMemory() error {
	nBytes, nTensors := m.nBytes.Load(), m.nTensors.Load()
	if m.Memory > 0 && TableBytes(nBytes, nTensors) > m.Memory {
		return fail(ErrMemory, "", "headers of %d bytes", nBytes)
	}
	return nil
}

// Read is [ReadHeader] for the next file of the model. If it refuses a header, that header doesn't
// count.
func (m *Headers) Read(r io.ReaderAt, fileSize int64) (*Header, error) {
	first := make([]byte, min(fileSize, FirstRead))
	if err := streams.ReadFull(r, first, 0); err != nil {
		return nil, err
	}
	n, err := headerSize(first, fileSize)
	if err != nil {
		return nil, err
	}
	return m.count(n, func() (*Header, error) {
		raw := make([]byte, n)
		if begun := copy(raw, first[lengthBytes:]); begun < len(raw) {
			if err := streams.ReadFull(r, raw[begun:], int64(len(first))); err != nil {
				return nil, err
			}
		}
		return m.parse(raw, fileSize)
	})
}

// Parse parses the header JSON of the next file of the model, which has fileSize bytes. raw is the
// bytes after the length field, with padding. The result keeps raw, so don't change it. The tensors
// must cover the data exactly once, without holes, up to the end of the file. Every defect is a
// [*HeaderError]. If Parse refuses a header, that header doesn't count.
func (m *Headers) Parse(raw []byte, fileSize int64) (*Header, error) {
	return m.count(int64(len(raw)), func() (*Header, error) { return m.parse(raw, fileSize) })
}

// count calls get for a header of n bytes, unless the model's headers would exceed the limit.
func (m *Headers) count(n int64, get func() (*Header, error)) (h *Header, err error) {
	if m.nBytes.Add(n) > maxHeaderBytes {
		err = fail(ErrLimit, "", "more than %d bytes of headers in one model", maxHeaderBytes)
	} else if err = m.checkMemory(); err == nil {
		h, err = get()
	}
	if err != nil {
		m.nBytes.Add(-n)
	}
	return h, err
}

// checkCoverage checks that the tensors cover the data area exactly once (docs/format.md §11).
func (h *Header) checkCoverage(fileSize int64) error {
	end := int64(0)
	for _, t := range h.ByOffset() {
		switch {
		case t.Begin < end:
			return fail(ErrOverlap, t.Name, "begins at %d, before %d", t.Begin, end)
		case t.Begin > end:
			return fail(ErrHole, t.Name, "begins at %d, after %d", t.Begin, end)
		}
		end = t.End
	}
	switch whole := h.DataStart() + end; {
	case fileSize < whole:
		return fail(ErrCut, "", "%d bytes of %d", fileSize, whole)
	case fileSize > whole:
		return fail(ErrTrailing, "", "it has %d bytes, the last tensor ends at %d", fileSize, whole)
	}
	return nil
}
