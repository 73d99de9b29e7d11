package forward

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// lint writes an output file with these tensors, all zero, and checks its header.
func lint(t *testing.T, o *spans.Output, es []safetensors.Entry) error {
	t.Helper()
	l, err := safetensors.NewHeader(nil, es)
	must(t, err)
	f := createIn(t, t.TempDir())
	defer f.Cleanup()
	if _, err := f.WriteAt(append(l.Bytes(), make([]byte, l.Size()-l.DataStart())...), 0); err != nil {
		t.Fatal(err)
	}
	return checkHeader(slog.New(slog.DiscardHandler), o, f, l)
}

// No output is finalized that has a trap for a loader.
func TestLintOfOutputs(t *testing.T) {
	norm := plan.Tensor{Name: "layers.0.norm.weight", DType: "BF16", Shape: []int64{8}, Length: 16}
	weight := plan.Tensor{Name: "layers.0.q.weight", DType: "F32", Shape: []int64{4, 8}, Length: 128, ExactF32: true}
	p := &plan.Plan{
		Units:       []plan.Unit{{Path: "layers.0", Attrs: []plan.Tensor{weight}, Siblings: []plan.Tensor{norm}}},
		OutputFiles: []plan.OutputFile{{Path: "layers_0.safetensors", Units: []int{0}}},
	}
	o := world.Got(spans.Outputs(p))(t)[0]
	stored := []safetensors.Entry{
		{Name: "layers.0.luts", DType: "U8", Shape: []int64{3, 256}},
		{Name: "layers.0.encoded_exponent", DType: "U8", Shape: []int64{12}},
		{Name: "layers.0.sign_mantissa", DType: "U8", Shape: []int64{32}},
		{Name: "layers.0.output_positions", DType: "U8", Shape: []int64{8}},
		{Name: "layers.0.gaps", DType: "U8", Shape: []int64{320}},
		{Name: "layers.0.split_positions", DType: "I64", Shape: []int64{0}},
		{Name: norm.Name, DType: "BF16", Shape: []int64{8}},
	}
	plain := []safetensors.Entry{{Name: weight.Name, DType: "BF16", Shape: weight.Shape}, stored[6]}
	for _, good := range [][]safetensors.Entry{stored, plain} {
		if err := lint(t, o, good); err != nil {
			t.Error(err)
		}
	}
	for i := range stored {
		bad := append(stored[:i:i], stored[i+1:]...)
		if err := lint(t, o, bad); err == nil {
			t.Errorf("nothing is wrong without %s", stored[i].Name)
		}
	}
}

// The output of an earlier run counts only with the very header that df11-convert writes: a journal can
// name any file.
func TestHeadersOfEarlierRuns(t *testing.T) {
	o := world.Got(spans.Outputs(&plan.Plan{OutputFiles: []plan.OutputFile{{Path: "rest.safetensors", Plain: []plan.Tensor{
		{Name: "a", DType: "BF16", Shape: []int64{8}, Length: 16}, {Name: "b", DType: "BF16", Shape: []int64{4}, Length: 8}}}}}))(t)[0]
	es := []safetensors.Entry{{Name: "a", DType: "BF16", Shape: []int64{8}}, {Name: "b", DType: "BF16", Shape: []int64{4}}}
	for what, tt := range map[string]struct {
		spoil func(raw string) string
		right bool
	}{
		"ours": {func(raw string) string { return raw }, true},
		"another order": {func(raw string) string {
			return strings.NewReplacer(`"a"`, `"b"`, `"b"`, `"a"`, `[8]`, `[4]`, `[4]`, `[8]`, "[0,16]", "[16,24]", "[16,24]", "[0,16]").Replace(raw)
		}, false},
		"more spaces":      {func(raw string) string { return raw + "        " }, false},
		"another metadata": {func(raw string) string { return strings.Replace(raw, "{", `{"__metadata__":{"x":"y"},`, 1) }, false},
		"another tensor":   {func(raw string) string { return strings.Replace(raw, `"b"`, `"c"`, 1) }, false},
	} {
		h, err := safetensors.NewHeader(o.Metadata, es)
		must(t, err)
		raw := tt.spoil(string(h.Raw))
		raw += strings.Repeat(" ", (8-len(raw)%8)%8)
		file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), raw...)
		file = append(file, make([]byte, 24)...)
		stored, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if err := CheckStored(o, stored); (err == nil) != tt.right {
			t.Errorf("%s: %s: %v", what, raw, err)
		}
	}
}

// No config.json is published that lists attributes in another order than they were encoded in.
func TestLintOfConfig(t *testing.T) {
	p := &plan.Plan{PatternDict: catalog.PatternDict{{Regex: `layers\.\d+`, Attrs: []string{"q", "k"}}}}
	config, err := metadata.InsertConfig([]byte(`{"a": 1}`), p.Version(), p.PatternDict)
	must(t, err)
	if err := CheckConfig(config, p); err != nil {
		t.Error(err)
	}
	older, err := metadata.InsertConfig([]byte(`{"a": 1}`), "0.0.1", p.PatternDict)
	must(t, err)
	if CheckConfig(older, p) == nil {
		t.Error("nothing is wrong with another version than the plan's")
	}
	p.PatternDict[0].Attrs = []string{"k", "q"}
	if err := CheckConfig(config, p); err == nil || !strings.Contains(err.Error(), "its pattern dict differs") {
		t.Errorf("attributes in another order than they were encoded in: %v", err)
	}
}

// The second reader notices a dtype, a shape, or an offset that ours got wrong, and a tensor that
// ours missed. It doesn't check headers with dtypes it doesn't know.
func TestSecondReader(t *testing.T) {
	for name, tt := range map[string]struct {
		dtype safetensors.DType
		spoil func(h *safetensors.Header, x *safetensors.Tensor)
		right bool
	}{
		"nothing":       {"BF16", func(*safetensors.Header, *safetensors.Tensor) {}, true},
		"dtype":         {"BF16", func(_ *safetensors.Header, x *safetensors.Tensor) { x.DType = "F16" }, false},
		"shape":         {"BF16", func(_ *safetensors.Header, x *safetensors.Tensor) { x.Shape = []int64{3, 2} }, false},
		"rank":          {"BF16", func(_ *safetensors.Header, x *safetensors.Tensor) { x.Shape = []int64{6} }, false},
		"begin":         {"BF16", func(_ *safetensors.Header, x *safetensors.Tensor) { x.Begin++ }, false},
		"end":           {"BF16", func(_ *safetensors.Header, x *safetensors.Tensor) { x.End-- }, false},
		"name":          {"BF16", func(_ *safetensors.Header, x *safetensors.Tensor) { x.Name = "c" }, false},
		"one is missed": {"BF16", func(h *safetensors.Header, _ *safetensors.Tensor) { h.Tensors = h.Tensors[1:] }, false},
		"raw":           {"BF16", func(h *safetensors.Header, _ *safetensors.Tensor) { h.Raw[0] = ' ' }, false},
		"unknown dtype": {"F8_E4M3", func(_ *safetensors.Header, x *safetensors.Tensor) { x.Begin++ }, true},
	} {
		h, err := safetensors.NewHeader([]safetensors.MetadataEntry{{Key: "format", Value: "pt"}}, []safetensors.Entry{
			{Name: "a", DType: tt.dtype, Shape: []int64{2, 3}}, {Name: "scalar", DType: "F32"}, {Name: "empty", DType: "I64", Shape: []int64{0}},
		})
		must(t, err)
		file := append(h.Bytes(), make([]byte, h.Size()-int64(len(h.Bytes())))...)
		h, err = safetensors.ReadHeader(bytes.NewReader(file), h.Size())
		must(t, err)
		at := slices.IndexFunc(h.Tensors, func(x safetensors.Tensor) bool { return x.Name == "a" })
		tt.spoil(h, &h.Tensors[at])
		var log bytes.Buffer
		err = readIndependently(slog.New(slog.NewTextHandler(&log, nil)), h)
		if skipped := strings.Contains(log.String(), "tensor=a dtype="+string(tt.dtype)); skipped != (name == "unknown dtype") {
			t.Errorf("%s: the log is %q", name, log.String())
		}
		if (err == nil) != tt.right || err != nil && !strings.Contains(err.Error(), "second reader") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
