package convert_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// secondNames are names that lead to a file x on some system, or to nothing.
func secondNames(x string) []string {
	return []string{"./" + x, "a/../" + x, "../out/" + x, "/" + x, ".//" + x, x + "/.", x + "/", x + ".", x + " ", `.\` + x, strings.ToUpper(x),
		"con." + x, "aux/" + x, "C:" + x, x + "::$DATA", "", ".", ".."}
}

// journalFields are the fields of a journal that hold a path. Each forges a journal by a plan to claim
// a file under another name, or to claim that name for a file that isn't there.
var journalFields = map[string]func(journal []byte, name, file string) []byte{
	"output": withLine(`{"output":{"path":%[1]s,%[2]s}}`),
	"from":   withLine(`{"output":{"path":"gone.safetensors","from":%[1]s,%[2]s}}`),
	"named":  withLine(`{"named":{"path":%[1]s,%[2]s}}`),
	"uploaded": withLine(`{"output":{"path":%[1]s,%[2]s}}
{"uploaded":%[1]s}`),
	"tensor": withLine(`{"tensor":{"output":%[1]s,"at":0,"crc":1}}`),
	"former": func(journal []byte, name, file string) []byte {
		head, rest, _ := bytes.Cut(journal, []byte("}\n"))
		return fmt.Appendf(nil, "%s,\"former\":[{\"path\":%s,%s}]}\n%s", head, name, file, rest)
	},
	"early": func(journal []byte, name, file string) []byte {
		head, rest, _ := bytes.Cut(bytes.Replace(journal, []byte(`"version":1`), []byte(`"version":3`), 1), []byte("}\n"))
		_, sum, _ := strings.Cut(file, `"sha256":`)
		return fmt.Appendf(nil, "%s,\"former\":{%s:%s}}\n%s", head, name, sum, rest)
	},
}

func withLine(format string) func([]byte, string, string) []byte {
	return func(journal []byte, name, file string) []byte {
		return append(slices.Clip(journal), fmt.Sprintf(format+"\n", name, file)...)
	}
}

// manifestFields are the fields of a manifest that hold a path, as journalFields.
var manifestFields = map[string]func(m *metadata.Manifest, name, file string){
	"output": func(m *metadata.Manifest, name, file string) {
		i := max(0, slices.IndexFunc(m.Outputs, func(f metadata.OutputFile) bool { return f.Path == file }))
		m.Outputs = append(m.Outputs, m.Outputs[i])
		m.Outputs[len(m.Outputs)-1].Path = name
	},
	"unit":   func(m *metadata.Manifest, name, _ string) { m.Units[0].File = name },
	"source": func(m *metadata.Manifest, name, _ string) { m.Source.Files[0].Path = name },
}

// TestSecondNamesOfFiles checks that a run, whatever names a journal or a manifest gives to the files
// of a target, ends with a whole result or refuses the target, and removes nothing of the user's. It
// tries names that no conversion writes: those that aren't clean, lead out of the folder, differ by
// letter case, or mean something else on Windows.
func TestSecondNamesOfFiles(t *testing.T) {
	t.Parallel()
	source, done := writeModel(t, small()), t.TempDir()
	_, err := convertLocal(t, source, done, plan.Options{}, nil)
	shared.Must(t, err)
	_, known, p := openLocal(t, source, plan.Options{})
	for i, s := range known.Listing.Weights {
		known.SHA256[i] = shared.Sum(shared.Read(t, filepath.Join(source, s.Path)))
	}
	journal, files := plant(t, p, known, forgery{of: small}).journal, shared.ReadAll(t, done)
	theirs := map[string][]byte{"mine.json": []byte("{}"), "MINE.safetensors.txt": []byte("mine"), "a/mine.json": []byte("[]"), "aux/mine.json": []byte("1")}
	ended, refused := 0, 0
	ends := func(what string, err error) bool {
		if err == nil {
			ended++
		} else if refused++; !refuses(err) {
			t.Errorf("%s: %v", what, err)
		}
		return err == nil
	}
	inFolder := func(what, changed string, content []byte) {
		root := t.TempDir()
		out := filepath.Join(root, "out")
		shared.WriteAll(t, out, files)
		shared.WriteAll(t, out, theirs)
		shared.Write(t, filepath.Join(root, "mine.json"), "outside")
		shared.Write(t, filepath.Join(out, changed), content)
		_, err := convertLocal(t, source, out, plan.Options{}, nil)
		if ends(what, err) {
			if r, err := verifyLocal(t, out, source, convert.LevelStructure); err != nil || !r.OK {
				t.Errorf("%s: the folder is damaged: %v", what, err)
			}
		}
		holdsAll(t, what, out, theirs)
		holdsAll(t, what, root, map[string][]byte{"mine.json": []byte("outside")})
	}
	w := newWorld(t, nil)
	inRepo := func(what, changed string, content []byte) {
		w.AddRepo(targetRepo, files)
		w.Push(targetRepo, "main", theirs)
		w.Push(targetRepo, "main", map[string][]byte{changed: content})
		if ends(what, w.pushLocal(t, source)) {
			for _, o := range w.manifest(t).Outputs {
				if f := w.target()[o.Path]; f.Size != o.Size || f.SHA256 != "" && f.SHA256 != o.SHA256 {
					t.Errorf("%s: %s is damaged in the repo: %+v", what, o.Path, f)
				}
			}
		}
		for name, want := range theirs {
			if got, err := w.ReadFile(targetRepo, "main", name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %s in the repo: %q, %v", what, name, got, err)
			}
		}
	}
	n := 0
	check := func(what, inFolderIs, inRepoIs string, content []byte) {
		if n++; n%shared.Stride(5) == 0 {
			inFolder(what, inFolderIs, content)
		}
		if n%shared.Stride(15) == 0 {
			inRepo(what, inRepoIs, content)
		}
	}
	for _, x := range []string{"model_layers_0.safetensors", "tokenizer.json", "config.json", "mine.json"} {
		sum := func(b []byte) string { return fmt.Sprintf(`"size":%d,"sha256":"%s"`, len(b), shared.Sum(b)) }
		b := files[x]
		if b == nil {
			b = theirs[x]
		}
		for _, name := range secondNames(x) {
			for _, field := range slices.Sorted(maps.Keys(journalFields)) {
				check(fmt.Sprintf("%s of a journal: %q", field, name), journalFile, ".df11/part-1-of-1.json", journalFields[field](journal, fmt.Sprintf("%q", name), sum(b)))
			}
			for _, field := range slices.Sorted(maps.Keys(manifestFields)) {
				m, err := metadata.ParseManifest(files[names.Manifest], 0)
				shared.Must(t, err)
				manifestFields[field](m, name, x)
				forged, err := json.Marshal(m)
				shared.Must(t, err)
				check(fmt.Sprintf("%s of a manifest: %q", field, name), names.Manifest, names.Manifest, forged)
			}
		}
	}
	if t.Logf("%d runs ended, %d were refused", ended, refused); ended == 0 || refused == 0 {
		t.Error("one of both never happened")
	}
}

// refuses reports whether an error says that files are in the way.
func refuses(err error) bool {
	_, conflict := errors.AsType[*publish.ConflictError](err)
	return conflict
}

// TestLinkWithoutHashStays checks that a journal that lists a link of the user's, which has no
// SHA-256, doesn't make it ours.
func TestLinkWithoutHashStays(t *testing.T) {
	t.Parallel()
	source, out := writeModel(t, small()), t.TempDir()
	_, known, p := openLocal(t, source, plan.Options{})
	for i, s := range known.Listing.Weights {
		known.SHA256[i] = shared.Sum(shared.Read(t, filepath.Join(source, s.Path)))
	}
	plant(t, p, known, forgery{of: small}).in(t, out, "")
	journal := shared.Read(t, filepath.Join(out, journalFile))
	shared.Write(t, filepath.Join(out, journalFile), withLine(`{"named":{"path":%s,%s}}`)(journal, `"vocab.json"`, `"size":0,"sha256":""`))
	link := filepath.Join(out, "vocab.json")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	_, err := convertLocal(t, source, out, plan.Options{}, nil)
	shared.Must(t, err)
	if _, err := os.Lstat(link); err != nil {
		t.Error(err)
	}
}

// holdsAll checks what files of a folder hold.
func holdsAll(t *testing.T, what, dir string, files map[string][]byte) {
	t.Helper()
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %s: %q, %v", what, name, got, err)
		}
	}
}
