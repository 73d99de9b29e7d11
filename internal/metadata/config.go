package metadata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/pyjson"
)

// The member that makes a config.json one of a DF11 model, and its fixed values (docs/format.md §12).
const (
	configKey       = "dfloat11_config"
	threadsPerBlock = 512
	bytesPerThread  = 8
)

// ErrAlreadyDF11 says that a source config has a dfloat11_config already.
var ErrAlreadyDF11 = errors.New("config.json has a dfloat11_config already: the source is a DF11 model")

// ErrQuantized says that a source config describes quantized weights.
var ErrQuantized = errors.New("config.json has a quantization_config: the source is quantized, not BF16")

// NewConfig returns the config.json that the official compressor writes where a layout has none: the dfloat11_config and
// nothing else, without a final newline.
func NewConfig(dict plan.PatternDict) []byte {
	return []byte(pyjson.Object([]string{configMember(dict, "  ", "  ")}, "", "  "))
}

// NewPipelineConfig returns the config.json that the published DF11 repos of diffusers models have: dfloat11_config, and a
// model_type that no loader of a pipeline looks at.
func NewPipelineConfig(dict plan.PatternDict) []byte {
	return []byte(pyjson.Object([]string{configMember(dict, "  ", "  "), `"model_type": "llama"`}, "", "  ") + "\n")
}

// InsertConfig returns config with the member dfloat11_config appended to its object. Every byte of config stays, in
// order; the new text follows its indentation and line ends. config may hold what Python's json reads: a byte order
// mark, NaN and Infinity included. The error is [ErrAlreadyDF11], [ErrQuantized], or says where config is not a JSON
// object.
func InsertConfig(config []byte, dict plan.PatternDict) ([]byte, error) {
	o, err := scanObject(config)
	if err != nil {
		return nil, fmt.Errorf("insert into config.json: %w", err)
	}
	if _, ok := o.members[configKey]; ok {
		return nil, ErrAlreadyDF11
	}
	if v, ok := o.members["quantization_config"]; ok && string(v) != "null" {
		return nil, ErrQuantized
	}
	return slices.Concat(config[:o.end], []byte(o.insertion(dict)), config[o.end:]), nil
}

// object describes the top-level object of a config, for the insertion of a member.
type object struct {
	members map[string]json.RawMessage
	end     int    // where the new member goes: after the last value, or after the brace of an empty object
	newline string // line end; "" when the object is on one line
	indent  string // of the members
}

// insertion returns the text to insert: separator, key and value in the style of the object.
func (o *object) insertion(dict plan.PatternDict) string {
	switch {
	case o.newline == "" && len(o.members) == 0:
		return configMember(dict, "", "")
	case o.newline == "":
		return ", " + configMember(dict, "", "")
	}
	text := "\n" + o.indent + configMember(dict, o.indent, o.indent)
	if len(o.members) > 0 {
		text = "," + text
	}
	return strings.ReplaceAll(text, "\n", o.newline)
}

// configMember returns `"dfloat11_config": {…}` as json.dumps writes it. Lines after the first start with prefix, then
// one indent a level; an empty indent puts everything on one line.
func configMember(dict plan.PatternDict, prefix, indent string) string {
	inner := prefix + indent
	return fmt.Sprintf(`"%s": %s`, configKey, pyjson.Object([]string{
		fmt.Sprintf(`"version": "%s"`, plan.FormatVersion),
		`"threads_per_block": ` + pyjson.List([]string{strconv.Itoa(threadsPerBlock)}, inner, indent),
		fmt.Sprintf(`"bytes_per_thread": %d`, bytesPerThread),
		`"pattern_dict": ` + string(dict.AppendJSON(nil, inner, indent)),
	}, prefix, indent))
}

// beforeMember matches the white space before a member, which shows the line end and the indentation of an object.
var beforeMember = regexp.MustCompile(`^[ \t\r\n]*?(?:,[ \t\r\n]*?)?(\r?\n)?([ \t]*)["}]`)

// scanObject finds the members of a config's object and the style of the last member.
func scanObject(config []byte) (*object, error) {
	text := pyjson.Standard(config)
	if !utf8.Valid(text) {
		return nil, errors.New("not valid UTF-8")
	}
	bom := len(text) - len(bytes.TrimPrefix(text, []byte(pyjson.BOM)))
	dec := json.NewDecoder(bytes.NewReader(text[bom:]))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	o := &object{members: map[string]json.RawMessage{}, end: bom + int(dec.InputOffset())}
	last := o.end
	for dec.More() {
		if err := o.member(dec); err != nil {
			return nil, err
		}
		last, o.end = o.end, bom+int(dec.InputOffset())
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the object")
	}
	if style := beforeMember.FindSubmatch(text[last:]); style != nil {
		o.newline, o.indent = string(style[1]), string(style[2])
	}
	return o, nil
}

// member reads the next member. Of a repeated key it keeps a value that is not null, so that no refusal is missed.
func (o *object) member(dec *json.Decoder) error {
	key, err := dec.Token()
	if err != nil {
		return err
	}
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return err
	}
	if old, ok := o.members[key.(string)]; !ok || string(old) == "null" {
		o.members[key.(string)] = value
	}
	return nil
}
