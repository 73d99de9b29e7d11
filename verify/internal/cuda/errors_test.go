package cuda

import "testing"

// TestErrorTexts checks that an error names the call and what the driver says.
func TestErrorTexts(t *testing.T) {
	for text, err := range map[string]Error{
		"cuInit: error 999": {Call: "cuInit", Code: 999},
		"cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)": {Call: "cuMemAlloc", Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY", Text: "out of memory"},
	} {
		if got := err.Error(); got != text {
			t.Errorf("%+v: %s", err, got)
		}
	}
}
