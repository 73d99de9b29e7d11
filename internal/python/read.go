package python

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Unmarshal reads a JSON text into what v points to, as Python's json does: a struct member has
// exactly its own name, only the last of two equal members counts, and NaN and Infinity are
// numbers. Use nothing else to read JSON that a loader also reads, or that comes with a model, a
// folder, or a repo. It refuses everything that Go and Python might understand differently: a
// member whose name differs from a struct's only in case, half of a surrogate pair, and text that
// isn't UTF-8.
//
// Structs name each member with a tag. They have no embedded fields to read, and there are no maps
// of structs.
func Unmarshal(data []byte, v any) error {
	dec, _, err := newDecoder(data)
	if err != nil {
		return err
	}
	if err := decode(dec, reflect.ValueOf(v).Elem()); err != nil {
		return whyNotJSON(data, err)
	}
	return atEnd(dec)
}

// whyNotJSON turns an error of encoding/json about the form of a text into one that says where the
// text stops being JSON. It returns any other error as it is.
func whyNotJSON(data []byte, err error) error {
	_, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case err == nil:
		return nil
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New("it's empty")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errEndsEarly
	case !isSyntax:
		return err
	}
	// A decoder that has read tokens no longer counts all bytes, so this reads the text once more.
	var text json.RawMessage
	whole := json.Unmarshal(standard(bytes.TrimPrefix(data, bom)), &text)
	wrong, isSyntax := errors.AsType[*json.SyntaxError](whole)
	switch {
	case !isSyntax: // the text is JSON, but has more after it
		return errTextAfter
	case strings.HasPrefix(wrong.Error(), "unexpected end"):
		return errEndsEarly
	}
	text = bytes.TrimPrefix(data, bom)
	before := text[:max(0, wrong.Offset-1)]
	line := bytes.Count(before, []byte("\n")) + 1
	at, _ := utf8.DecodeRune(text[len(before):])
	if at == '\n' {
		return fmt.Errorf("line %d ends too early", line)
	}
	return fmt.Errorf("line %d: %q can't be there", line, at)
}

var (
	errEndsEarly = errors.New("it ends too early")
	errTextAfter = errors.New("text after the JSON value")

	bom = []byte("\ufeff")
)

// decode reads the next value into v, whose old contents are lost. Package json reads any value
// without a struct.
func decode(dec *json.Decoder, v reflect.Value) error {
	v.SetZero()
	if _, itself := v.Addr().Interface().(json.Unmarshaler); itself || !holdsStruct(v.Type()) {
		return inWords(dec.Decode(v.Addr().Interface()))
	}
	open, err := dec.Token()
	if err != nil || open == nil { // null
		return err
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	want, kind := json.Delim('{'), "an object"
	if v.Kind() == reflect.Slice {
		want, kind = '[', "a list"
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	if open != want {
		return fmt.Errorf("%s instead of %s", kindOf(open), kind)
	}
	for dec.More() {
		if v.Kind() == reflect.Struct {
			err = decodeMember(dec, v)
		} else {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			err = decode(dec, v.Index(v.Len()-1))
		}
		if err != nil {
			return err
		}
	}
	_, err = dec.Token() // the closing delimiter
	return err
}

// kindOf returns the kind of value that begins with a token, as encoding/json names it.
func kindOf(t json.Token) string {
	switch t {
	case json.Delim('{'):
		return "object"
	case json.Delim('['):
		return "array"
	}
	switch t.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	}
	return "number"
}

// inWords replaces an error about Go's types by one about JSON's.
func inWords(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	want := "another type"
	switch e.Type.Kind() {
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice, reflect.Array:
		want = "a list"
	case reflect.Map, reflect.Struct:
		want = "an object"
	case reflect.Float32, reflect.Float64:
		want = "a number"
	default:
		if e.Type.Kind() >= reflect.Int && e.Type.Kind() <= reflect.Uintptr {
			want = "an integer"
		}
	}
	return fmt.Errorf("%s instead of %s", e.Value, want)
}

// holdsStruct reports whether a type is a struct, or a pointer to or a list of structs.
func holdsStruct(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

// decodeMember reads the next member of an object into the field with its name, or skips it.
func decodeMember(dec *json.Decoder, v reflect.Value) error {
	key, err := dec.Token()
	if err != nil {
		return err
	}
	for i := range v.NumField() {
		switch name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); {
		case name == "" || name == "-": // isn't read
		case name == key:
			if err := decode(dec, v.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		case strings.EqualFold(name, key.(string)):
			return fmt.Errorf("member %q differs from %q only in case, so programs may disagree "+
				"which one counts", key, name)
		}
	}
	var passed json.RawMessage
	return dec.Decode(&passed)
}

// Member is one member of an object.
type Member struct {
	Key   string
	Value json.RawMessage // NaN and Infinity are other numbers (see [Unmarshal])
	End   int             // offset after the value
}

// Members lists the members of the only object in a text, and returns the offset after its opening
// brace. A repeated key appears each time; Python takes the last.
func Members(data []byte) (list []Member, begin int, err error) {
	dec, skip, err := newDecoder(data)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = whyNotJSON(data, err) }()
	offset := func() int { return skip + int(dec.InputOffset()) }
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, 0, errors.New("not a JSON object")
	}
	begin = offset()
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, 0, err
		}
		m := Member{Key: key.(string)}
		if err := dec.Decode(&m.Value); err != nil {
			return nil, 0, err
		}
		m.End = offset()
		list = append(list, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, 0, err
	}
	return list, begin, atEnd(dec)
}

// newDecoder returns a decoder for a text without its byte order mark, which has skip bytes.
func newDecoder(data []byte) (dec *json.Decoder, skip int, err error) {
	text := bytes.TrimPrefix(data, bom)
	if !utf8.Valid(text) {
		return nil, 0, errors.New("not valid UTF-8")
	}
	if half := HalfCharacter(text); half != "" {
		return nil, 0, fmt.Errorf("%s is half a character", half)
	}
	return json.NewDecoder(bytes.NewReader(standard(text))), len(data) - len(text), nil
}

// atEnd refuses text after the value.
func atEnd(dec *json.Decoder) error {
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errTextAfter
	}
	return nil
}

// HalfCharacter returns an escaped surrogate that isn't part of a pair, or "". Python keeps it; Go
// doesn't.
func HalfCharacter(text []byte) string {
	for {
		_, escape, found := bytes.Cut(text, []byte(`\`))
		if !found || len(escape) == 0 {
			return ""
		}
		text = escape[1:]
		if escape[0] != 'u' {
			continue // without an expression, because a hostile text may have millions
		}
		switch at := surrogates.FindSubmatchIndex(escape[:min(len(escape), 11)]); {
		case at == nil:
		case at[2] >= 0:
			return `\` + string(escape[at[2]:at[3]])
		default:
			text = escape[at[1]:]
		}
	}
}

// surrogates matches what follows the backslash of an escaped character outside the Basic
// Multilingual Plane, or of half of one.
var surrogates = regexp.MustCompile(`(?is)^ud[89ab]..\\ud[c-f]..|^(ud[89a-f]..)`)

// stringOrWord matches a JSON string, or a number or word outside strings.
var stringOrWord = regexp.MustCompile(`(?s)"(?:\\.|[^"\\])*"|[^\s",:\[\]{}]+`)

// standard replaces NaN, Infinity, and -Infinity outside strings by fractions of the same length.
// So a decoder accepts them where it accepts these floats, and nowhere else, and all offsets stay
// right.
func standard(data []byte) []byte {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data
	}
	return stringOrWord.ReplaceAllFunc(data, func(match []byte) []byte {
		switch string(match) {
		case "NaN":
			return []byte("0.5")
		case "Infinity":
			return []byte("0.500000")
		case "-Infinity":
			return []byte("-0.500000")
		}
		return match
	})
}
