package convert_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/metadata"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
	"github.com/df11-convert/df11-convert/verify"
)

// gpu is a second decoder of tests.
type gpu func(context.Context, *verify.Unit) error

func (g gpu) Compare(ctx context.Context, u *verify.Unit, _ io.ReaderAt, _ verify.CompareOptions) error {
	return g(ctx, u)
}

func (gpu) Describe() (kernel, device string) { return "a function", "a GPU" }

// answers is a second decoder that gives these errors in turn, and the last of them from then on.
func answers(errs ...error) gpu {
	return func(context.Context, *verify.Unit) error {
		err := errs[0]
		errs = errs[min(1, len(errs)-1):]
		return err
	}
}

var errGPULost = fmt.Errorf("%w: cuLaunchKernel: out of memory", verify.ErrGPULost)

// TestGPULost checks that a run that loses its GPU goes on, makes the same files, and claims no GPU
// check for units that had none.
func TestGPULost(t *testing.T) {
	want := reference(t, small())
	for nProved, results := range map[int64][]error{0: {errGPULost}, 1: {nil, errGPULost}} {
		w := newWorld(t, small())
		r, err := w.convert(t.Context(), t, t.TempDir(), func(o *convert.Options) { o.GPU = answers(results...) })
		shared.Must(t, err)
		if on := decodedOn(r.Verified.By); on != "on the CPU" {
			t.Errorf("the report says that every unit was decoded %s", on)
		}
		var proved metadata.Verification
		for _, v := range w.manifest(t).Verification {
			if v.Method == "gpu" {
				proved = v
			}
		}
		if proved.NUnits != nProved || nProved > 0 && proved.Device != "a GPU" {
			t.Errorf("the manifest has %+v", proved)
		}
		sameWeights(t, w.target(), want) // the card names the GPU
	}
}

// decodedOn says what decoded all units: "on the CPU and on the GPU".
func decodedOn(list []metadata.Verification) string {
	var on []string
	for _, v := range list {
		if v.NUnits == list[0].NUnits {
			on = append(on, "on the "+strings.ToUpper(v.Method))
		}
	}
	return strings.Join(on, " and ")
}

// TestGPUFails checks that any other error of the GPU ends the run, above all a wrong bit.
func TestGPUFails(t *testing.T) {
	for _, want := range []error{&verify.MismatchError{Unit: "u", Elem: 7}, verify.ErrNoGPU} {
		w := newWorld(t, small())
		_, err := w.convert(t.Context(), t, t.TempDir(), func(o *convert.Options) { o.GPU = answers(want) })
		if !errors.Is(err, want) {
			t.Errorf("got %v", err)
		}
		w.unfinished(t)
	}
}

// TestGPUProofStays checks that a run without a GPU keeps a finished target as it is, with the GPU
// checks of earlier runs.
func TestGPUProofStays(t *testing.T) {
	w := newWorld(t, small())
	r := w.mustConvert(t, func(o *convert.Options) { o.GPU = answers(nil) })
	if on := decodedOn(r.Verified.By); on != "on the CPU and on the GPU" {
		t.Errorf("the report says that every unit was decoded %s", on)
	}
	before := w.target()
	w.mustConvert(t)
	sameFiles(t, w.target(), before)
	if v := w.manifest(t).Verification; len(v) != 2 || v[1].Device != "a GPU" {
		t.Errorf("verification %+v", v)
	}
}
