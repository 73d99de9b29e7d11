package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/df11-convert/df11-convert/internal/python"
)

// parser turns header JSON into a Header, one token at a time. It never reads a general value, and
// anything unexpected is an error. So nesting can't grow, and nothing is skipped. It checks every
// limit before it keeps the next value.
type parser struct {
	json *json.Decoder
	h    *Header
	of   *Headers // the model's limits
}

// parse is Parse for a header that is counted.
func (m *Headers) parse(raw []byte, fileSize int64) (*Header, error) {
	if !utf8.Valid(raw) {
		return nil, fail(ErrNotUTF8, "", "")
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, fail(ErrSyntax, "", "does not begin with {")
	}
	if half := python.HalfCharacter(raw); half != "" {
		return nil, fail(ErrSyntax, "", "%s is half a character", half)
	}
	h := &Header{Raw: raw, byName: map[string]int{}}
	in := &bounded{Reader: bytes.NewReader(bytes.TrimRight(raw, " "))} // without padding
	in.json = json.NewDecoder(in)
	in.json.UseNumber()
	p := &parser{json: in.json, h: h, of: m}
	err := p.header()
	if in.exceeded {
		err = fail(ErrLimit, "", "a string of more than %d bytes", maxString)
	}
	if err == nil {
		err = h.checkCoverage(fileSize)
	}
	if err != nil {
		m.nTensors.Add(-int64(len(h.Tensors)))
		return nil, err
	}
	return h, nil
}

// bounded ends a header at a string that's too long, because the decoder holds several copies of it.
type bounded struct {
	*bytes.Reader
	json     *json.Decoder
	exceeded bool
}

func (b *bounded) Read(p []byte) (int, error) {
	read := b.Size() - int64(b.Len())
	if b.exceeded = read-b.json.InputOffset() > maxString; b.exceeded {
		return 0, io.ErrUnexpectedEOF
	}
	return b.Reader.Read(p)
}

func (p *parser) header() error {
	err := p.object("", func(key string) error {
		if key == metadataKey {
			return p.metadata()
		}
		return p.member(key)
	})
	if err != nil {
		return err
	}
	if _, err := p.json.Token(); err != io.EOF { //nolint:errorlint // the decoder wraps nothing
		return p.syntax("", "text after the object")
	}
	return nil
}

// member reads the tensor of a key. It refuses a name that exceeds the limit.
func (p *parser) member(name string) error {
	if len(name) > MaxNameBytes {
		return fail(ErrLimit, name, "a name of more than %d bytes", MaxNameBytes)
	}
	t, err := p.tensor(name)
	if err != nil {
		return err
	}
	p.h.byName[name] = len(p.h.Tensors)
	p.h.Tensors = append(p.h.Tensors, t)
	if p.of.nTensors.Add(1) > MaxTensors {
		return fail(ErrLimit, "", "more than %d tensors in one model", MaxTensors)
	}
	return p.of.checkMemory()
}

// metadata reads the strings of a file. null stands for none, as for the official crate.
func (p *parser) metadata() error {
	begin, err := p.json.Token()
	if begin == nil && err == nil {
		return nil
	}
	return p.objectAt(begin, metadataKey, func(key string) error {
		if len(p.h.Metadata) == maxMetadataKeys {
			return fail(ErrLimit, metadataKey, "more than %d keys", maxMetadataKeys)
		}
		value, err := p.str(metadataKey)
		p.h.Metadata = append(p.h.Metadata, MetadataEntry{key, value})
		return err
	})
}

// tensor reads and checks one tensor's object.
func (p *parser) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	var offsets []int64
	hasDType := false
	err := p.object(name, func(key string) (err error) {
		switch key {
		case "dtype":
			var dtype string
			dtype, err = p.str(name)
			t.DType, hasDType = DType(dtype), true
		case "shape":
			t.Shape, err = p.numbers(name)
		case "data_offsets":
			offsets, err = p.numbers(name)
		default:
			err = fail(ErrUnknown, name, "%.100q", key)
		}
		return err
	})
	switch {
	case err != nil:
	case !hasDType:
		err = fail(ErrMissing, name, "dtype")
	case t.Shape == nil:
		err = fail(ErrMissing, name, "shape")
	case offsets == nil:
		err = fail(ErrMissing, name, "data_offsets")
	}
	if err != nil {
		return Tensor{}, err
	}
	return t, t.setOffsets(offsets)
}

// object reads `{"key": value, …}`. It refuses a repeated key, and calls member at each value.
func (p *parser) object(tensor string, member func(key string) error) error {
	return p.objectAt(p.token(), tensor, member)
}

// objectAt is object behind a token that was read.
func (p *parser) objectAt(begin json.Token, tensor string, member func(key string) error) error {
	seen := map[string]bool{}
	return p.list('{', begin, tensor, func() error {
		key, err := p.str(tensor)
		if err != nil {
			return err
		}
		if seen[key] {
			return fail(ErrDuplicate, cmp.Or(tensor, key), "%.100q", key)
		}
		seen[key] = true
		return member(key)
	})
}

// numbers reads `[1, 2, …]`. Each number is an integer from 0 to 2^63-1. It refuses more numbers
// than a tensor may have dimensions.
func (p *parser) numbers(tensor string) ([]int64, error) {
	list := []int64{}
	err := p.list('[', p.token(), tensor, func() error {
		if len(list) == maxRank {
			return fail(ErrLimit, tensor, "more than %d dimensions", maxRank)
		}
		number, _ := p.token().(json.Number)
		n, err := strconv.ParseUint(number.String(), 10, 63)
		if err != nil {
			return fail(ErrNumber, tensor, "at byte %d", p.json.InputOffset())
		}
		list = append(list, int64(n))
		return nil
	})
	return list, err
}

// list reads items behind a bracket or brace, which got must be, to its end. It calls item at each.
func (p *parser) list(want json.Delim, got json.Token, tensor string, item func() error) error {
	if got != want {
		return p.syntax(tensor, "expected "+want.String())
	}
	for p.json.More() {
		if err := item(); err != nil {
			return err
		}
	}
	if p.token() == nil {
		return p.syntax(tensor, "an object or a list doesn't end")
	}
	return nil
}

func (p *parser) str(tensor string) (string, error) {
	text, ok := p.token().(string)
	if !ok {
		return "", p.syntax(tensor, "expected a string")
	}
	return text, nil
}

// token returns the next token, or nil if there is none.
func (p *parser) token() json.Token {
	t, err := p.json.Token()
	if err != nil {
		return nil
	}
	return t
}

func (p *parser) syntax(tensor, detail string) error {
	return fail(ErrSyntax, tensor, "%s at byte %d", detail, p.json.InputOffset())
}

// setOffsets stores the offsets after checking them against dtype and shape.
func (t *Tensor) setOffsets(offsets []int64) error {
	if len(offsets) != 2 {
		return fail(ErrOffsets, t.Name, "%d numbers", len(offsets))
	}
	t.Begin, t.End = offsets[0], offsets[1]
	if t.End < t.Begin {
		return fail(ErrOffsets, t.Name, "begin %d, end %d", t.Begin, t.End)
	}
	n, kind := t.DType.nBytes(t.Shape)
	if kind != "" {
		return fail(kind, t.Name, "%.100q %v", t.DType, t.Shape)
	}
	if n != t.NBytes() {
		return fail(ErrSize, t.Name, "%s %v takes %d bytes, offsets say %d", t.DType, t.Shape, n,
			t.NBytes())
	}
	return nil
}
