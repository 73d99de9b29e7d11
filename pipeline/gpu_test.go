package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// scriptedGPU is a second decoder whose Compare gives these errors in turn, and the last of them from then on.
type scriptedGPU struct{ results []error }

func (g *scriptedGPU) Compare(context.Context, *verify.Unit, io.ReaderAt, verify.CompareOptions) error {
	err := g.results[0]
	if len(g.results) > 1 {
		g.results = g.results[1:]
	}
	return err
}

func (g *scriptedGPU) Describe() (string, string) { return "scripted", "a GPU" }

var errGPULost = fmt.Errorf("%w: cuLaunchKernel: out of memory", verify.ErrGPULost)

// TestGPULost: without its GPU a run goes on, makes the same files, and says of no unit that a GPU has proved it
// that none has.
func TestGPULost(t *testing.T) {
	want := reference(t, small())
	for nProved, results := range map[int64][]error{0: {errGPULost}, 1: {nil, errGPULost}} {
		w := newWorld(t, small())
		r, err := w.convert(t.Context(), t, t.TempDir(), func(o *pipeline.Options) { o.GPU = &scriptedGPU{results} })
		if err != nil {
			t.Fatal(err)
		}
		if r.GPU {
			t.Error("the report says that a GPU decoded every unit")
		}
		var gpu metadata.Verification
		for _, v := range w.manifest(t).Verification {
			if v.Method == "gpu" {
				gpu = v
			}
		}
		if gpu.NUnits != nProved || nProved > 0 && gpu.Device != "a GPU" {
			t.Errorf("the manifest has %+v", gpu)
		}
		sameWeights(t, w, want)
	}
}

// TestGPUFails: any other error of the GPU's ends the run, a wrong bit above all.
func TestGPUFails(t *testing.T) {
	for _, want := range []error{&verify.MismatchError{Unit: "u", Elem: 7}, verify.ErrNoGPU} {
		w := newWorld(t, small())
		_, err := w.convert(t.Context(), t, t.TempDir(), func(o *pipeline.Options) { o.GPU = &scriptedGPU{[]error{want}} })
		if !errors.Is(err, want) {
			t.Errorf("got %v", err)
		}
		w.unfinished(t)
	}
}

// TestGPUProofStays: a run without a GPU on a finished target leaves it as it is, with what a GPU has proved before.
func TestGPUProofStays(t *testing.T) {
	w := newWorld(t, small())
	w.mustConvert(t, func(o *pipeline.Options) { o.GPU = &scriptedGPU{[]error{nil}} })
	before := w.target()
	w.mustConvert(t)
	sameFiles(t, w.target(), before)
	if v := w.manifest(t).Verification; len(v) != 2 || v[1].Device != "a GPU" {
		t.Errorf("verification %+v", v)
	}
}
