package convert

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// oneFile is a source of one weight file.
type oneFile struct {
	model.Source
	data []byte
}

func (s oneFile) Stream(_ context.Context, _ int, off, end int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s.data[off:end])), nil
}

// TestOnlyDroppedTensorsComeFromTheSource checks that a rebuilt file takes from the source only the
// tensors that the plan drops. If it took any other that no output holds, its SHA-256 would be right,
// and the tensor lost.
func TestOnlyDroppedTensorsComeFromTheSource(t *testing.T) {
	data := world.Safetensors([]world.Tensor{{Name: "vae.x", DType: "BF16", Shape: []int64{2}, Data: []byte("vae!")},
		{Name: "model.x", DType: "BF16", Shape: []int64{2}, Data: []byte("lost")}})
	h, err := safetensors.ReadHeader(bytes.NewReader(data), int64(len(data)))
	world.Must(t, err)
	p := &plan.Plan{}
	p.Dropped = []plan.Tensor{{Name: "x", Source: "vae.x"}}
	j := &job{Options: Options{Source: oneFile{data: data}, Plan: p}}
	read := func(name string) (string, error) {
		var b bytes.Buffer
		x, _ := h.Lookup(name)
		err := j.outside()(t.Context(), model.File{WeightFile: plan.WeightFile{File: plan.File{Path: "all.safetensors"}, Header: h}}, x, &b)
		return b.String(), err
	}
	if got, err := read("vae.x"); err != nil || got != "vae!" {
		t.Errorf("a dropped tensor: %q, %v", got, err)
	}
	if got, err := read("model.x"); err == nil || got != "" || model.SubjectOf(err) == "" {
		t.Errorf("a tensor that is lost: %q, %v", got, err)
	}
}
