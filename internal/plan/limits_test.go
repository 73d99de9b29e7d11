package plan

import (
	"errors"
	"strings"
	"testing"
)

// TestNamesThatCannotBePublished checks that a weight file is refused at the start if no repo or
// manifest can hold its name.
func TestNamesThatCannotBePublished(t *testing.T) {
	for _, name := range []string{"bad\xff", "line\nend", "bell\a", "a:b", "back\\slash", strings.Repeat("x", 250)} {
		tr := newTrial()
		src := source([]WeightFile{tr.m.file(name + ".safetensors")}, nil)
		src.Config, src.WeightFile = nil, name+".safetensors"
		_, err := New(t.Context(), src, tr.opt)
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Detail, "a repo or a file system may refuse the name") {
			t.Errorf("weights %.20q: %v", name, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\a") {
			t.Errorf("the error is not quoted: %q", err)
		}
	}
}
