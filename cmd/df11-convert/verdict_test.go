package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/proof"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// spoilTensor flips a bit in each of the first n bytes of a tensor, step bytes apart.
func spoilTensor(t *testing.T, file, tensor string, n, step int64) {
	t.Helper()
	b := mustRead(t, file)
	h, err := safetensors.ReadHeader(strings.NewReader(string(b)), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	x, ok := h.Lookup(tensor)
	if !ok {
		t.Fatalf("%s has no %s", file, tensor)
	}
	for i := range n {
		b[h.DataStart()+x.Begin+i*step] ^= 1
	}
	writeTo(t, file, b)
}

// lastLine is the last line of a text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

// spoil makes a copy of the published model with 5 wrong weights in two modules and 2 wrong values in one copied tensor.
func (p *published) spoil(t *testing.T) string {
	t.Helper()
	bad := filepath.Join(t.TempDir(), "bad")
	for name, b := range p.files {
		writeTo(t, filepath.Join(bad, filepath.FromSlash(name)), b)
	}
	first, second := filepath.Join(bad, "model_layers_0.safetensors"), filepath.Join(bad, "model_layers_1.safetensors")
	spoilTensor(t, first, "model.layers.0.sign_mantissa", 3, 1)
	spoilTensor(t, second, "model.layers.1.sign_mantissa", 2, 100)
	spoilTensor(t, second, "model.layers.1.input_layernorm.weight", 2, 2)
	return bad
}

// TestVerdictCountsDifferences: the last line says how much differs: of the first module without --all, of the whole model with
// it. The document and the page say the same, and name the first weight of each module.
func TestVerdictCountsDifferences(t *testing.T) {
	p := publish(t)
	bad := p.spoil(t)
	code, out, _ := program(t, "verify", bad, "--against", p.original)
	want := bad + " differs from model: 3 weights in 1 of 4 modules, 1 file not as the manifest says; the check ended there (--all goes on)"
	if got := lastLine(out); code != exitWrong || got != want {
		t.Errorf("exit %d, the last line is\n%s, want\n%s", code, got, want)
	}
	page := filepath.Join(t.TempDir(), "page.md")
	code, out, diag := program(t, "verify", bad, "--against", p.original, "--all", "--report", page)
	want = bad + " differs from model: 5 weights in 2 of 4 modules, 2 values in 1 copied tensor, 2 files not as the manifest says"
	if got := lastLine(out); code != exitWrong || got != want {
		t.Errorf("exit %d, the last line is\n%s, want\n%s", code, got, want)
	}
	text := string(mustRead(t, page))
	for _, place := range []string{"model.layers.0", "model.layers.1", "input_layernorm"} {
		if !strings.Contains(out, place) || !strings.Contains(strings.ReplaceAll(text, `\_`, "_"), place) {
			t.Errorf("%s is not named in\n%s%s", place, out, text)
		}
	}
	if !strings.Contains(diag, "element 0: decoded") || !strings.Contains(text, "# ") {
		t.Errorf("stderr %s, page\n%s", diag, text)
	}
	code, out, _ = program(t, "verify", bad, "--against", p.original, "--all", "--json")
	checkDocument(t, code, out)
	var doc proof.Report
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	d := doc.Differences
	if doc.Equal || d == nil || !d.All || d.Modules != 2 || d.OfModules != 4 || d.Weights != 5 || d.Tensors != 1 || d.Values != 2 || d.Files != 2 {
		t.Fatalf("the document says %+v", d)
	}
	for _, x := range d.List {
		if x.Kind == proof.KindModule && (x.Element == nil || *x.Element != 0 || x.Got == x.Want || x.Weights < 1000) {
			t.Errorf("%+v", x)
		}
	}
}

// TestEveryLevelHasAVerdict: on success and on failure, at every level, the last line names the model; a report is written; and
// what a level can't see it does not deny.
func TestEveryLevelHasAVerdict(t *testing.T) {
	p := publish(t)
	bad, page := p.spoil(t), filepath.Join(t.TempDir(), "page.md")
	if err := os.Remove(filepath.Join(bad, "df11-manifest.json")); err != nil {
		t.Fatal(err)
	}
	for level, want := range map[string]string{
		"structure": "shows no fault",
		"sample":    "differs from model: ",
		"proof":     "differs from model: 3 files of the original cannot be rebuilt",
		"full":      "differs from model: 5 weights in 2 of 4 modules, 2 values in 1 copied tensor",
	} {
		_, out, diag := program(t, "verify", bad, "--against", p.original, "--level", level, "--all", "--seed", "1", "--report", page)
		if got := lastLine(out); !strings.HasPrefix(got, bad+" "+want) {
			t.Errorf("%s: %s\n%s", level, out, diag)
		}
		out = must(t, "verify", p.folder, "--against", p.original, "--level", level, "--report", page)
		if got := lastLine(out); !strings.HasPrefix(got, p.folder+" ") || !strings.Contains(got, "model (level "+level+")") {
			t.Errorf("%s: %s", level, out)
		}
		if text := string(mustRead(t, page)); !strings.Contains(text, "level "+level) {
			t.Errorf("%s: %s", level, text)
		}
	}
}

// TestAllGoesOnBehindBrokenStructure: a module that cannot be opened and a file that is missing hide no weight that differs.
func TestAllGoesOnBehindBrokenStructure(t *testing.T) {
	p := publish(t)
	bad := p.spoil(t)
	spoilTensor(t, filepath.Join(bad, "model_layers_0.safetensors"), "model.layers.0.output_positions", 8, 1)
	if err := os.Remove(filepath.Join(bad, "lm_head.safetensors")); err != nil {
		t.Fatal(err)
	}
	code, out, diag := program(t, "verify", bad, "--against", p.original, "--all")
	if got := lastLine(out); code != exitWrong || !strings.Contains(got, "2 weights in 2 of 4 modules") || !strings.Contains(got, "1 fault in headers or config") {
		t.Errorf("exit %d: %s%s", code, out, diag)
	}
}

// TestWrongOriginalIsRecognized: if almost all weights differ, or the manifest lists other source files, the hint asks for the
// right original. A few wrong weights give no such hint.
func TestWrongOriginalIsRecognized(t *testing.T) {
	p := publish(t)
	other := hubtest.NewLlama(2, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000, ExtraFiles: true})
	p.AddModel("acme/other", other)
	folder := filepath.Join(t.TempDir(), "other")
	writeModel(t, other, folder)
	for _, c := range []struct{ against, hint string }{
		{folder, "almost all weights differ: is other the right original?"},
		{"acme/other", "made from other files than those of acme/other"},
	} {
		code, out, diag := program(t, "verify", p.folder, "--against", c.against)
		if code != exitWrong || !strings.Contains(diag, c.hint) || !strings.Contains(lastLine(out), "differs from") {
			t.Errorf("%s: exit %d: %s%s", c.against, code, out, diag)
		}
	}
	if _, _, diag := program(t, "verify", p.spoil(t), "--against", p.original); strings.Contains(diag, "original?") {
		t.Error(diag)
	}
}
