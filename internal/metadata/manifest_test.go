package metadata_test

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/alloc"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package")

// golden compares got with testdata/name, or rewrites the file with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
	}
	if want := readFile(t, path); !bytes.Equal(got, want) {
		t.Errorf("%s differs (run the test with -update and look at the diff); got:\n%s", name, got)
	}
}

func sum(digit string) string { return strings.Repeat(digit, 64) }

func testManifest() *metadata.Manifest {
	return &metadata.Manifest{
		Schema: metadata.SchemaVersion,
		Tool:   metadata.Tool{Name: "df11-convert", Version: "v1.2.3"},
		Source: metadata.Source{
			Repo: "org/Tiny", Commit: strings.Repeat("c", 40),
			Files: []metadata.SourceFile{
				{Path: "config.json", Size: 20, SHA256: sum("1"), Integrity: metadata.Streamed},
				{Path: "model.safetensors", Size: 300, SHA256: sum("2"), Integrity: metadata.Proof,
					Header: "[\n 1\n ] [ 1, 2 ]" + `{"<é>":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}` + "\u2028   "},
				{Path: "part/x.safetensors", Size: 8, Integrity: metadata.Unchecked},
			},
		},
		Plan: metadata.PlanInfo{Digest: sum("3"), Layout: "transformers", Entry: "llama-untied", Provenance: "published:DFloat11/x"},
		Units: []metadata.Unit{
			{Path: "model.layers.0", File: "model_layers_0.safetensors", Status: metadata.DF11, NWeights: 20,
				Tensors: []metadata.UnitTensor{{Name: "model.layers.0.q.weight", Shape: []int64{2, 5}}, {Name: "model.layers.0.k.weight", Shape: []int64{10, 1}}}},
			{Path: "lm_head", File: "lm_head.safetensors", Status: metadata.BF16, Reason: "exponent_range", NWeights: 6,
				Tensors: []metadata.UnitTensor{{Name: "lm_head.weight", Shape: []int64{2, 3}}}},
		},
		Outputs: []metadata.OutputFile{
			{Path: "model_layers_0.safetensors", Kind: metadata.KindUnit, Size: 200, SHA256: sum("6")},
			{Path: "lm_head.safetensors", Kind: metadata.KindUnit, Size: 100, SHA256: sum("7")},
			{Path: "model.safetensors", Kind: metadata.KindRemainder, Size: 50, SHA256: sum("8")},
			{Path: "config.json", Kind: metadata.KindConfig, Size: 400, SHA256: sum("9")},
		},
		Aliases:   []metadata.Alias{{Name: "lm_head.weight", Of: "model.embed_tokens.weight"}},
		NotCopied: []plan.Skipped{{Path: "model.safetensors.index.json", Why: "the index of the source"}},
		Verification: []metadata.Verification{
			{Method: "cpu", Decoder: "independent decoder", NUnits: 1, NTensors: 4, NWeights: 20},
		},
	}
}

func TestManifestGolden(t *testing.T) {
	m := testManifest()
	got, err := m.Marshal()
	must(t, err)
	golden(t, "manifest.json", got)
	back, err := metadata.ParseManifest(got, 0)
	must(t, err)
	if !reflect.DeepEqual(back, m) {
		t.Errorf("read back %+v", back)
	}
}

func TestManifestRefusals(t *testing.T) {
	tests := []struct {
		want   string
		change func(*metadata.Manifest)
	}{
		{"schema version 0", func(m *metadata.Manifest) { m.Schema = 0 }},
		{"plan digest", func(m *metadata.Manifest) { m.Plan.Digest = "abc" }},
		{"safe inside a repo", func(m *metadata.Manifest) { m.Outputs[0].Path = "../x" }},
		{"safe inside a repo", func(m *metadata.Manifest) { m.Outputs[0].Path = "/etc/passwd" }},
		{"safe inside a repo", func(m *metadata.Manifest) { m.Source.Files[0].Path = `a\b` }},
		{"safe inside a repo", func(m *metadata.Manifest) { m.Source.Files[0].Path = "a//b" }},
		{"safe inside a repo", func(m *metadata.Manifest) { m.Source.Files[0].Path = "" }},
		{"listed twice", func(m *metadata.Manifest) { m.Outputs[1].Path = m.Outputs[0].Path }},
		{"size -1", func(m *metadata.Manifest) { m.Outputs[1].Size = -1 }},
		{"malformed SHA-256", func(m *metadata.Manifest) { m.Outputs[1].SHA256 = strings.ToUpper(sum("a")) }},
		{"unknown kind", func(m *metadata.Manifest) { m.Outputs[3].Kind = "other" }},
		{"malformed SHA-256", func(m *metadata.Manifest) { m.Source.Files[1].SHA256 = "" }},
		{"malformed SHA-256", func(m *metadata.Manifest) { m.Source.Files[2].SHA256 = "1" }},
		{"unknown integrity", func(m *metadata.Manifest) { m.Source.Files[1].Integrity = "" }},
		{"is listed twice", func(m *metadata.Manifest) { m.Units[1].Path = m.Units[0].Path }},
		{"a file with units", func(m *metadata.Manifest) { m.Units[1].File = "model.safetensors" }},
		{"unknown status", func(m *metadata.Manifest) { m.Units[1].Status = "fp8" }},
		{"bad shape", func(m *metadata.Manifest) { m.Units[0].Tensors[0].Shape = []int64{1 << 40, 1 << 40} }},
		{"bad shape", func(m *metadata.Manifest) { m.Units[0].Tensors[0].Shape = []int64{-2, -5} }},
		{"more than", func(m *metadata.Manifest) { // together they're 2^63, which int64 takes for less than nothing
			u := &m.Units[0]
			u.Tensors = slices.Repeat([]metadata.UnitTensor{{Name: "x", Shape: []int64{1 << 43}}}, 1<<20)
			u.NWeights = math.MinInt64
		}},
		{"-1 bits", func(m *metadata.Manifest) { m.Units[0].CodedBits = -1 }},
		{"size 9223372036854775807", func(m *metadata.Manifest) { m.Source.Files[0].Size = math.MaxInt64 }},
		{"counts 9223372036854775807", func(m *metadata.Manifest) { m.Verification[0].NWeights = math.MaxInt64 }},
		{"unit says 20", func(m *metadata.Manifest) { m.Units[0].Tensors = m.Units[0].Tensors[:1] }},
	}
	for _, tt := range tests {
		m := testManifest()
		tt.change(m)
		if _, err := m.Marshal(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("want %q, got %v", tt.want, err)
		}
	}
	for text, want := range map[string]string{
		`{"schema_version": 2, "units": {}}`: "newer than this program",
		`{"schema_version": 1}`:              "plan digest",
		`[]`:                                 "read manifest",
		``:                                   "read manifest",
	} {
		if _, err := metadata.ParseManifest([]byte(text), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q, got %v", text, want, err)
		}
	}
}

// FuzzParseManifest checks that every accepted manifest can be written and read again without
// change.
func FuzzParseManifest(f *testing.F) {
	seed, err := testManifest().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var m *metadata.Manifest
		var err error
		alloc.PerByte(t, 500, len(data), func() { m, err = metadata.ParseManifest(data, 0) })
		if err != nil {
			return
		}
		first, err := m.Marshal()
		must(t, err)
		again, err := metadata.ParseManifest(first, 0)
		must(t, err)
		if second, err := again.Marshal(); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%q became %q, %v", first, second, err)
		}
	})
}

// TestManifestsFitTheBudget checks that reading any manifest of the size that a budget allows takes
// less than the budget. A small manifest that would become very many objects or values is refused
// before it's decoded.
func TestManifestsFitTheBudget(t *testing.T) {
	const budget = 64 << 20
	room := int(metadata.MaxManifestBytes(budget)) - 100
	if metadata.MaxManifestBytes(0) < 200<<20 || room > budget/4 {
		t.Errorf("%d bytes, %d without a budget", room, metadata.MaxManifestBytes(0))
	}
	for _, c := range []struct {
		member string
		budget int64
		within int64
		want   string
	}{
		{`"source":{"files":[{"header":"` + strings.Repeat("x", room) + `"}]}`, budget, budget, ""},
		{`"units":[{"tensors":[{"shape":[` + strings.Repeat("0,", room/2) + `0]}]}]`, budget, budget, ""},
		{`"units":[` + strings.Repeat("{},", room/3) + `{}]`, budget, budget, ""},
		{`"units":[` + strings.Repeat("{},", 1<<20) + "{}]", 0, 1 << 20, "JSON with more than"},
		{`"units":[{"tensors":[` + strings.Repeat("{},", 1<<20) + "{}]}]", 0, 1 << 20, "JSON with more than"},
		{`"dropped":[` + strings.Repeat(`"",`, 9<<20) + `""]`, 0, 1 << 20, "JSON with more than"},
	} {
		data := []byte(`{"schema_version":1,` + c.member + `}`)
		alloc.Within(t, c.within, func() {
			if _, err := metadata.ParseManifest(data, c.budget); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.40s: %v", c.member, err)
			}
		})
	}
}
