package pipeline_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/pipeline"
)

// editHeader replaces a piece of a safetensors header by another one. The data stay as they are.
func editHeader(t *testing.T, file []byte, from, to string) []byte {
	t.Helper()
	n := 8 + binary.LittleEndian.Uint64(file)
	head, data := file[8:n], file[n:]
	if !bytes.Contains(head, []byte(from)) {
		t.Fatalf("no %s in %s", from, head)
	}
	head = bytes.TrimRight(bytes.Replace(head, []byte(from), []byte(to), 1), " ")
	head = append(head, bytes.Repeat([]byte(" "), 7-(len(head)+7)%8)...)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(out, head...), data...)
}

// folderWith is a copy of a folder with one file replaced, or left out for nil.
func folderWith(t *testing.T, from, name string, content []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	shared.Must(t, os.CopyFS(dir, os.DirFS(from)))
	shared.Must(t, os.Remove(filepath.Join(dir, name)))
	if content != nil {
		shared.Write(t, filepath.Join(dir, name), content)
	}
	return dir
}

// TestWrongForm: the official loader goes by types and shapes of the six tensors, so a file whose
// bytes are right but whose header describes them as something else is wrong, at every level, for
// decode and for inspect, with or without a manifest.
func TestWrongForm(t *testing.T) {
	source, good := writeModel(t, formModel()), localResult(t, formModel())
	const name = "lm_head.safetensors"
	file := shared.Read(t, filepath.Join(good, name))
	for _, tt := range []struct{ tensor, from, to string }{ // encoder judges more of them
		{"luts", `"U8","shape":[4,256]`, `"I8","shape":[4,256]`},
		{"sign_mantissa", `"U8","shape":[4096]`, `"BF16","shape":[2048]`},
		{"split_positions", `"I64","shape":[0]`, `"I64","shape":[0,1]`},
	} {
		t.Run(tt.tensor+" "+tt.to, func(t *testing.T) {
			at := `"lm_head.` + tt.tensor + `":{"dtype":`
			bad := folderWith(t, good, name, editHeader(t, file, at+tt.from, at+tt.to))
			shared.Must(t, os.Remove(filepath.Join(bad, "df11-manifest.json")))
			for _, level := range []pipeline.Level{pipeline.LevelStructure, pipeline.LevelProof, pipeline.LevelFull} {
				_, err := verifyLocal(t, bad, source, level)
				namesTensor(t, string(level), err, name, tt.tensor)
			}
			shared.Write(t, filepath.Join(bad, "df11-manifest.json"), shared.Read(t, filepath.Join(good, "df11-manifest.json")))
			d, err := model.OpenDF11Local(t.Context(), bad, 0)
			shared.Must(t, err)
			defer d.Close()
			_, err = describe.DF11(t.Context(), d)
			namesTensor(t, "inspect", err, name, tt.tensor)
			_, err = pipeline.Decode(t.Context(), pipeline.PairOptions{Pair: back.Pair{DF11: d}, OutDir: t.TempDir(), Workers: 1})
			namesTensor(t, "decode", err, name, tt.tensor)
		})
	}
}

// namesTensor wants a WrongError with file and tensor.
func namesTensor(t *testing.T, who string, err error, file, tensor string) {
	t.Helper()
	wrong := (*model.InvalidError)(nil)
	if !errors.As(err, &wrong) || wrong.File != file || !strings.Contains(wrong.Error(), "lm_head."+tensor+" is ") {
		t.Errorf("%s: %v", who, err)
	}
}

// formModel has a head of 64 × 64 weights: one chunk of codes.
func formModel() *hubtest.Model {
	return hubtest.NewLlama(3, hubtest.ModelOptions{Hidden: 64, Vocab: 64, Layers: 1, Extra: noPicture})
}

// TestNothingToGain: a model without a module that DF11 can hold is refused: the result would be as
// large as the source.
func TestNothingToGain(t *testing.T) {
	source := writeModel(t, formModel())
	name := filepath.Join(source, "model.safetensors")
	file := shared.Read(t, name)
	for i := 8 + binary.LittleEndian.Uint64(file); i < uint64(len(file)); i++ {
		file[i] = 0xff // exponent 255, which DF11 reserves
	}
	shared.Write(t, name, file)
	_, err := convertLocal(t, source, t.TempDir(), plan.Options{}, nil)
	if r, ok := errors.AsType[*plan.RefusedError](err); !ok || r.Hint == "" || !strings.Contains(r.Detail, "lm_head") {
		t.Errorf("got %v", err)
	}
}
