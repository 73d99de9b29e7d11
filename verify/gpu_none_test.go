//go:build nogpu

package verify

import (
	"errors"
	"strings"
	"testing"
)

func TestWithoutGPU(t *testing.T) {
	for _, mode := range []GPUMode{"", GPUAuto, GPUOff} {
		if g, err := OpenGPU(GPUOptions{Mode: mode}); g != nil || err != nil {
			t.Errorf("mode %q: %v, %v", mode, g, err)
		}
	}
	_, err := OpenGPU(GPUOptions{Mode: GPURequire})
	if !errors.Is(err, ErrNoGPU) || !strings.Contains(err.Error(), "this build for ") {
		t.Errorf("required: %v", err)
	}
}
