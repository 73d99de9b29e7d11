package convert_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// formModel has a head of 64 × 64 weights: one chunk of codes.
func formModel() *hubtest.Model {
	return hubtest.NewLlama(3, hubtest.ModelOptions{Hidden: 64, Vocab: 64, Layers: 1, Extra: hubtest.OwnPicture})
}

// TestNothingToGain checks that a model without any module for DF11 is refused, because the result
// would be as large as the source, and that nothing of it stays.
func TestNothingToGain(t *testing.T) {
	source := writeModel(t, formModel())
	name := filepath.Join(source, "model.safetensors")
	file := shared.Read(t, name)
	for i := 8 + binary.LittleEndian.Uint64(file); i < uint64(len(file)); i++ {
		file[i] = 0xff // exponent 255, which DF11 reserves
	}
	shared.Write(t, name, file)
	out := filepath.Join(t.TempDir(), "out")
	_, err := convertLocal(t, source, out, plan.Options{}, nil)
	if left, statErr := os.Stat(out); statErr == nil {
		t.Errorf("left behind: %v", left)
	}
	if r, ok := errors.AsType[*plan.RefusedError](err); !ok || r.Hint != hint.NoGain || !strings.Contains(r.Detail, "each module has weights of 2^113 or more, Inf or NaN: lm_head") {
		t.Errorf("got %v", err)
	}
}
