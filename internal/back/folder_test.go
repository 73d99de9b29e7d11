package back

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// TestNothingThatComesMeanwhileIsReplaced: a file that somebody puts where a rebuilt one is to be,
// while that is written, stays, with and without force; with force the one that was there before
// goes.
func TestNothingThatComesMeanwhileIsReplaced(t *testing.T) {
	for _, before := range []bool{false, true} {
		for _, meanwhile := range []bool{false, true} {
			root := t.TempDir()
			name := filepath.Join(root, "model.safetensors")
			write := func(text string) {
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := "rebuilt"
			if before {
				write("before")
			}
			file := model.File{WeightFile: plan.WeightFile{File: plan.File{Path: "model.safetensors", Size: 7}}, SHA256: "of rebuilt"}
			d, err := OpenFolder(t.Context(), root, []model.File{file}, 0o666, before)
			if err != nil {
				t.Fatal(err)
			}
			f, err := d.Create("model.safetensors", 7)
			if err != nil {
				t.Fatal(err)
			}
			if meanwhile {
				want = "meanwhile, and longer"
				write(want)
			}
			err = f.WriteAll([]byte("rebuilt"))
			if occupied := (*OccupiedError)(nil); errors.As(err, &occupied) != meanwhile || !meanwhile && err != nil {
				t.Errorf("before %v, meanwhile %v: %v", before, meanwhile, err)
			}
			if got, err := os.ReadFile(name); string(got) != want {
				t.Errorf("before %v, meanwhile %v: %q, %v", before, meanwhile, got, err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
