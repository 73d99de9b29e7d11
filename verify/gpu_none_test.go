//go:build nogpu

package verify

import (
	"errors"
	"os"
	"testing"
)

// TestHardware has nothing to test: demanded, it fails.
func TestHardware(t *testing.T) {
	if os.Getenv("DF11_GPU") == "1" {
		t.Fatal("DF11_GPU=1, but:", errNotBuilt)
	}
	t.Skip("NOT TESTED: the GPU path is not in this build")
}

func TestWithoutGPU(t *testing.T) {
	for _, mode := range []GPUMode{"", GPUAuto, GPUOff} {
		if g, err := OpenGPU(GPUOptions{Mode: mode}); g != nil || err != nil {
			t.Errorf("mode %q: %v, %v", mode, g, err)
		}
	}
	_, err := OpenGPU(GPUOptions{Mode: GPURequire})
	if !errors.Is(err, ErrNoGPU) || err.Error() != "no GPU: built without GPU support" {
		t.Errorf("required: %v", err)
	}
}
