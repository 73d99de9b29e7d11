package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

var outputSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile(filepath.FromSlash("../../docs/output.schema.json"))
})

var nullMember = regexp.MustCompile(`(?m)^ *(".*": )?null,?$`)

// checkDocument holds what --json printed against docs/output.schema.json. It must be one object and nothing else. Nothing in it is
// null: an empty list is an array, and what is not known is left out.
func checkDocument(t *testing.T, code int, stdout string) {
	t.Helper()
	schema, err := outputSchema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(stdout)) // fails on trailing text
	if err != nil {
		t.Fatalf("--json printed %q: %v", stdout, err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("%s\n%v", stdout, err)
	}
	if null := nullMember.FindString(stdout); null != "" {
		t.Errorf("the document has %s", null)
	}
	if said := fmt.Sprint(doc.(map[string]any)["exit_code"]); said != fmt.Sprint(code) {
		t.Errorf("exit code %d, but the document says %s", code, said)
	}
}

// TestDocuments: --json prints one valid object for every command and every outcome.
func TestDocuments(t *testing.T) {
	if _, err := outputSchema(); err != nil { // by a path from here
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir) // where batch writes to
	at := func(name string) string { return filepath.Join(dir, name) }
	llama(t, at("m"), "BF16", 0, "")
	llama(t, at("f32"), "F32", 1, "")
	must(t, at("m"), "-o", at("out"))
	must(t, at("m"), "-o", at("bad"))
	flipOne(t, at("bad"))
	writeTo(t, at("list.yaml"), []byte("models:\n- source: "+at("m")+"\n- source: "+at("f32")+"\n"))
	for _, c := range []struct {
		code int
		kind string
		args []string
	}{
		{exitOK, "", []string{at("m"), "-o", at("again")}},
		{exitOK, "", []string{"plan", at("m")}},
		{exitOK, "", []string{"status", at("list.yaml")}},
		{exitOK, "", []string{"verify", at("out"), "--against", at("m")}},
		{exitOK, "", []string{"verify", at("out"), "--against", at("m"), "--level", "proof"}},
		{exitOK, "", []string{"decode", at("out"), "-o", at("back")}},
		{exitOK, "", []string{"inspect", at("out")}},
		{exitOK, "", []string{"inspect", at("m")}},
		{exitOK, "", []string{"inspect", at("f32")}},
		{exitRefused, "not_convertible", []string{"batch", at("list.yaml")}},
		{exitWrong, "", []string{"verify", at("bad"), "--against", at("m")}},
		{exitRefused, "not_convertible", []string{"plan", at("f32")}},
		{exitUsage, "usage", []string{at("nothing")}},
		{exitUsage, "usage", []string{"--psuh"}},
		{exitUsage, "usage", []string{"verfy", "a/b"}},
		{exitUsage, "usage", []string{"verify"}},
	} {
		code, stdout, stderr := program(t, append(slices.Clone(c.args), "--json")...)
		if code != c.code || !strings.Contains(stdout, `"kind": "`+c.kind) && c.code != exitOK {
			t.Errorf("%v: exit %d, want %d %s\n%s%s", c.args, code, c.code, c.kind, stdout, stderr)
		}
	}
}

// flipOne flips a bit of a DF11 model's signs and mantissas, which the structure does not show.
func flipOne(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*layers_0*.safetensors"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	b := mustRead(t, names[0])
	h, err := safetensors.ReadHeader(strings.NewReader(string(b)), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range h.Tensors {
		if strings.HasSuffix(x.Name, ".sign_mantissa") {
			b[h.DataStart()+x.Begin] ^= 4
		}
	}
	writeTo(t, names[0], b)
}

// TestQuiet: --quiet prints where the result is, and nothing else.
func TestQuiet(t *testing.T) {
	dir := t.TempDir()
	src, out := filepath.Join(dir, "m"), filepath.Join(dir, "out")
	llama(t, src, "BF16", 0, "")
	for _, c := range []struct {
		want string
		args []string
	}{
		{out, []string{src, "-o", out, "-q"}},
		{filepath.Join(dir, "back"), []string{"decode", out, "-o", filepath.Join(dir, "back"), "-q"}},
	} {
		if code, stdout, stderr := program(t, c.args...); code != exitOK || stdout != c.want+"\n" || stderr != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}
