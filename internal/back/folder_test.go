package back

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestNothingThatComesMeanwhileIsReplaced checks that a file stays, even with force, if someone
// puts it in the place of a rebuilt file while that is written. Force replaces files that were
// there before.
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
			f, err := d.disk.Create("model.safetensors", 7)
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

// TestNamesOfTheOriginal checks that only plain names of weights are written, and no two that any
// system takes for one file. The names come from a manifest that anyone may have written.
func TestNamesOfTheOriginal(t *testing.T) {
	for name, ok := range map[string]bool{
		".bashrc": false, ".ssh/authorized_keys": false, "config.json": false, "model.safetensors.index.json": false, "x.safetensors.exe": false,
		"../x.safetensors": false, "a/../x.safetensors": false, "/x.safetensors": false, "./x.safetensors": false, "a//x.safetensors": false,
		`..\x.safetensors`: false, "C:x.safetensors": false, "x.safetensors:stream": false, ".x.safetensors": false, ".git/x.safetensors": false,
		"a/.b/x.safetensors": false, "x\x1b[2J.safetensors": false, "x\n.safetensors": false, "": false, ".": false, ".safetensors": false,
		"MODEL-00002-of-00003.safetensors":               false, // on file systems that ignore case
		"model-00002-of-00003.safetensors/x.safetensors": false, // a folder and a file
		"CON.safetensors":                                false, "aux/x.safetensors": false, "x/nul.y.safetensors": false, "lpt¹ .safetensors": false, "x./y.safetensors": false,
		"x.safetensors": true, "transformer/diffusion_pytorch_model.safetensors": true, "split_files/diffusion_models/x.safetensors": true,
	} {
		err := CheckPlaces(new(model.DF11), t.TempDir(), named(name, "model-00002-of-00003.safetensors"))
		if (err == nil) != ok || err != nil && (!IsFault(err) || strings.ContainsAny(err.Error(), "\x1b\n")) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := CheckPlaces(new(model.DF11), t.TempDir(), nil); !IsFault(err) {
		t.Error("no file:", err)
	}
}

// named are files of the original.
func named(names ...string) []model.File {
	var files []model.File
	for _, n := range names {
		files = append(files, model.File{WeightFile: plan.WeightFile{File: plan.File{Path: n}}})
	}
	return files
}

// TestNothingIsWrittenIntoTheModel checks that no path leads decode to write into the model that it
// reads.
func TestNothingIsWrittenIntoTheModel(t *testing.T) {
	f := newFolders(t)
	above := filepath.Dir(f.df11)
	at := func(name string) string { return filepath.Join(above, name) }
	type row struct {
		root, file string
		own        bool
	}
	rows := []row{
		{f.df11, "x.safetensors", true}, {f.df11 + "/.", "x.safetensors", true}, {f.df11 + "/sub", "x.safetensors", true},
		{f.df11 + "/not/yet/../there", "x.safetensors", true}, {at("source") + "/../df11", "x.safetensors", true},
		{above, "df11/x.safetensors", true}, {above, "x.safetensors", false}, {at("df11-2"), "x.safetensors", false}, {f.source, "x.safetensors", false},
	}
	if os.Symlink(f.df11, at("link")) == nil {
		rows = append(rows, row{at("link"), "x.safetensors", true}, row{at("link/sub"), "x.safetensors", true})
	}
	if _, err := os.Stat(at("DF11")); err == nil {
		rows = append(rows, row{at("DF11"), "x.safetensors", true}) // this file system ignores case
	}
	t.Chdir(f.df11)
	rows = append(rows, row{".", "x.safetensors", true}, row{"bf16", "x.safetensors", true}, row{"../df11", "x.safetensors", true}, row{"..", "x.safetensors", false})
	p := f.open()
	for _, r := range rows {
		err := CheckPlaces(p.DF11, r.root, named(r.file))
		if _, own := errors.AsType[*OwnInputError](err); own != r.own || !own && err != nil {
			t.Errorf("%s in %s: %v", r.file, r.root, err)
		}
	}
}

// TestWhoseFilesAreThere checks that right files stay, no matter who wrote them. All other weights
// are in the way, and so is an index with other contents.
func TestWhoseFilesAreThere(t *testing.T) {
	shards := []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
	const index = "model.safetensors.index.json"
	for name, tt := range map[string]struct {
		text    string
		refused bool
	}{
		shards[0]:          {"{}", true},
		index:              {`{"weight_map":{"w":"other"}}`, true},
		"else.safetensors": {"{}", true},
		"notes.txt":        {"mine", false},
		shards[1]:          {"right", false},
	} {
		root := t.TempDir()
		world.Must(t, os.WriteFile(filepath.Join(root, name), []byte(tt.text), 0o644))
		files := named(shards...)
		for i := range files {
			files[i].Header, files[i].Size, files[i].SHA256 = new(safetensors.Header), 5, world.Sum([]byte("right"))
		}
		d, err := OpenFolder(t.Context(), root, files, 0o666, false)
		occupied, refused := errors.AsType[*OccupiedError](err)
		if refused != tt.refused || refused && !slices.Equal(occupied.Files, []string{name}) || !refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if refused {
			d, err = OpenFolder(t.Context(), root, files, 0o666, true)
			world.Must(t, err)
		}
		if d.Has(files[0]) || d.Has(files[1]) != (name == shards[1]) {
			t.Errorf("%s: what is there is not known", name)
		}
		world.Must(t, errors.Join(d.Finish(), d.Close()))
		if b := world.Read(t, filepath.Join(root, index)); !strings.Contains(string(b), "weight_map") || strings.Contains(string(b), "other") {
			t.Errorf("%s: the index is %s", name, b)
		}
	}
}
