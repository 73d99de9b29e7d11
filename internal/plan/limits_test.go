package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// TestNamesThatCannotBePublished checks that a weight file is refused at the start if no repo or
// manifest can hold its name. Other files with such names are left out.
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
		tr.src = func(s Source) Source {
			s.Files = append(s.Files, File{Path: name + strings.Repeat("y", 10)}, File{Path: name + "/tokenizer.json"})
			return s
		}
		p, err := tr.plan()
		if err != nil || len(p.Copied) != 0 && len(name) < 200 || len(p.NotCopied) < 1 {
			t.Errorf("other file %.20q: %v", name, err)
		}
	}
}

// TestRenamedNamesStayWritable checks that a name is refused before any conversion if it fits a
// header only until the catalog renames it.
func TestRenamedNamesStayWritable(t *testing.T) {
	t.Parallel()
	refused := 0
	for _, e := range catalog.All() {
		for _, r := range e.Renames() {
			src := synth(t, e, false)
			h := *src.Weights[0].Header
			end := h.Tensors[len(h.Tensors)-1].End
			name := r[0] + strings.Repeat("x", safetensors.MaxNameBytes-len(r[0]))
			h.Tensors = append(h.Tensors, safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: []int64{0}, Begin: end, End: end})
			src.Weights[0].Header = &h
			opt := ownOptions(e)
			p, err := New(t.Context(), src, opt)
			switch {
			case err == nil:
				checkWhole(t, p)
			case len(r[1]) <= len(r[0]) || !strings.Contains(err.Error(), "more than 512 bytes"):
				t.Errorf("%s: %v", e.ID, err)
			default:
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("no rule makes a name longer")
	}
}
