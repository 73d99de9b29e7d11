package cuda

import (
	"strings"
	"testing"
)

// TestErrorTexts checks that an error names the call, what the driver says, and, if known, what to
// do.
func TestErrorTexts(t *testing.T) {
	for _, x := range []struct {
		err        Error
		text, hint string
	}{
		{Error{Call: "cuInit", Code: 999}, "cuInit: error 999", ""},
		{Error{Call: "cuMemAlloc", Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY", Text: "out of memory"},
			"cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)", ""},
		{Error{Call: "cuModuleLoadDataEx", Code: codeNoCompiler}, "cuModuleLoadDataEx: error 221", "install the library"},
		{Error{Call: "cuModuleLoadDataEx", Code: codeCompilerOff}, "cuModuleLoadDataEx: error 223", "unset CUDA_DISABLE_PTX_JIT"},
	} {
		if got, hint := x.err.Error(), x.err.Hint(); got != x.text || !strings.Contains(hint, x.hint) || (hint == "") != (x.hint == "") {
			t.Errorf("%+v: %s, %q", x.err, got, hint)
		}
	}
}
