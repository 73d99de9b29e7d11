package main

import (
	"encoding/json"
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

// spoil makes a copy of the published model with wrong weights in two modules and wrong values in a copied tensor.
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

// TestEveryLevelHasAVerdict: on success and on failure, at every level, the last line names the model. What is wrong is named
// exactly, in a folder whose hashes differ from the manifest too, and what a level can't see it does not deny.
func TestEveryLevelHasAVerdict(t *testing.T) {
	p := publish(t)
	bad := p.spoil(t)
	for level, want := range map[string]string{
		"structure": "shows no fault against model (level structure)",
		"proof":     "differs from model: rebuild model-00001-of-00003.safetensors: the file has sha256 ",
		"full":      "differs from model: module model.layers.0, tensor model.layers.0.self_attn.q_proj.weight, element 0: decoded 0x",
	} {
		_, out, diag := program(t, "verify", bad, "--against", p.original, "--level", level)
		if got := lastLine(out); !strings.HasPrefix(got, bad+" "+want) {
			t.Errorf("%s: %s\n%s", level, out, diag)
		}
		out = must(t, "verify", p.folder, "--against", p.original, "--level", level)
		if got := lastLine(out); !strings.HasPrefix(got, p.folder+" ") || !strings.Contains(got, "model (level "+level+")") {
			t.Errorf("%s: %s", level, out)
		}
	}
	code, out, _ := program(t, "verify", bad, "--against", p.original, "--json")
	checkDocument(t, code, out)
	var doc struct {
		proof.Report
		Error failure
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	e := doc.Error
	if doc.Equal || e.Kind != "mismatch" || e.Unit != "model.layers.0" || e.Element == nil || *e.Element != 0 || e.Got == e.Want {
		t.Errorf("the document says %+v", e)
	}
}

// TestWrongOriginalIsRecognized: a hint asks for the right original, and knows whether the manifest lists other source files.
func TestWrongOriginalIsRecognized(t *testing.T) {
	p := publish(t)
	other := hubtest.NewLlama(2, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000, ExtraFiles: true})
	p.AddModel("acme/other", other)
	folder := filepath.Join(t.TempDir(), "other")
	writeModel(t, other, folder)
	for _, c := range []struct{ against, hint string }{
		{folder, "if other is not the original, name another with --against"},
		{"acme/other", "made from other files than those of acme/other"},
	} {
		code, out, diag := program(t, "verify", p.folder, "--against", c.against)
		if code != exitWrong || !strings.Contains(diag, c.hint) || !strings.Contains(lastLine(out), "differs from") {
			t.Errorf("%s: exit %d: %s%s", c.against, code, out, diag)
		}
	}
}
