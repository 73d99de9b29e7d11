package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// shards is a small model in several weight files, in a folder and on a hub.
func shards(t *testing.T) (dir string, c *hub.Client) {
	t.Helper()
	m := hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 3, ShardBytes: 30_000})
	dir, srv := t.TempDir(), hubtest.Start(t)
	must(t, m.Write(dir))
	srv.AddModel("a/llama", m)
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: srv.URL, Token: "hf_test"}, CacheDir: t.TempDir()})
	must(t, err)
	return dir, c
}

// TestOutputsOfAFolderThatCannotBeRead checks that only an output that isn't in the folder is read
// from the repo: another error says what's wrong with the folder.
func TestOutputsOfAFolderThatCannotBeRead(t *testing.T) {
	dir, c := shards(t)
	info, err := c.Info(t.Context(), "a/llama", "")
	must(t, err)
	var refs []hub.FileRef
	for _, f := range info.Files {
		if strings.HasSuffix(f.Path, ".safetensors") {
			refs = append(refs, f.Ref(info.ID, info.SHA))
		}
	}
	for _, why := range []error{os.ErrNotExist, os.ErrPermission, syscall.EIO, errors.New("changed")} {
		open := func(name string) (*os.File, error) {
			if name == refs[1].Path {
				return nil, &os.PathError{Op: "open", Path: name, Err: why}
			}
			return os.Open(filepath.Join(dir, name))
		}
		d, err := OpenOutputs(t.Context(), refs, open, c, 0)
		if gone := errors.Is(why, os.ErrNotExist); gone != (err == nil) || !gone && !errors.Is(err, why) {
			t.Errorf("%v: %v", why, err)
		}
		if err == nil {
			must(t, d.Close())
		}
	}
}

// TestFolderAndRepoAreAlike checks that a model and its bytes are the same in a folder and in a
// repo.
func TestFolderAndRepoAreAlike(t *testing.T) {
	dir, c := shards(t)
	local, here, err := OpenLocal(t.Context(), dir, plan.Options{}, 0)
	must(t, err)
	defer local.Close()
	remote, there, err := OpenHub(t.Context(), c, "a/llama", "", plan.Options{}, 0)
	must(t, err)
	defer remote.Close()
	if !bytes.Equal(here.Listing.Index, there.Listing.Index) || !bytes.Equal(here.Listing.Config, there.Listing.Config) || len(here.Listing.Weights) < 3 {
		t.Error("small files or the number of weight files differ")
	}
	if here.Endpoint != "" || there.Endpoint != c.Endpoint() || remote.Local(0) != nil || here.Folder != dir || there.Folder != "" {
		t.Error("folder and repo are mixed up")
	}
	for _, src := range []Source{local, remote} {
		for i, w := range here.Listing.Weights {
			if !reflect.DeepEqual(w.Header, there.Listing.Weights[i].Header) {
				t.Errorf("%s: headers differ", w.Path)
			}
			want, err := os.ReadFile(filepath.Join(dir, w.Path))
			must(t, err)
			r, err := src.Stream(t.Context(), i, 10, w.Size)
			must(t, err)
			got, err := io.ReadAll(r)
			if err != nil || r.Close() != nil || !bytes.Equal(got, want[10:]) {
				t.Errorf("%s: %d bytes, %v", w.Path, len(got), err)
			}
			got = make([]byte, 20)
			if err := src.ReadRange(t.Context(), i, got, 5); err != nil || !bytes.Equal(got, want[5:25]) {
				t.Errorf("%s: range: %v", w.Path, err)
			}
		}
	}
}

// TestSourceOfDevicesAndPipesIsRefused checks that only regular files are read. Others may be
// endless, or never come.
func TestSourceOfDevicesAndPipesIsRefused(t *testing.T) {
	dir, _ := shards(t)
	index := filepath.Join(dir, "model.safetensors.index.json")
	if err := errors.Join(os.Remove(index), os.Symlink("/dev/zero", index)); err != nil {
		t.Skip("no links or no /dev/zero here:", err)
	}
	if _, _, err := OpenLocal(t.Context(), dir, plan.Options{}, 0); err == nil || !strings.Contains(err.Error(), "isn't a regular file") {
		t.Errorf("index is /dev/zero: %v", err)
	}
	if _, err := OpenDF11Local(t.Context(), dir, 0); err == nil || !strings.Contains(err.Error(), "a regular file") {
		t.Errorf("DF11 folder: %v", err)
	}
	if _, err := OpenDF11Local(t.Context(), index, 0); err == nil || !strings.Contains(err.Error(), "a regular file") {
		t.Errorf("DF11 file: %v", err)
	}
}

// TestHeaders checks a header longer than the first read, and the error for a file without one.
func TestHeaders(t *testing.T) {
	entry := `"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`
	pad := bytes.Repeat([]byte(" "), 3*safetensors.FirstRead+1)
	long := append([]byte("{"+entry+"}"), pad...)
	file := append([]byte{byte(len(long)), byte(len(long) >> 8), byte(len(long) >> 16), 0, 0, 0, 0, 0}, append(long, 1)...)
	h, err := readHeader(new(safetensors.Headers), bytes.NewReader(file), int64(len(file)))
	if err != nil || len(h.Tensors) != 1 || len(h.Raw) != len(long) {
		t.Errorf("long header: %v", err)
	}
	if _, err := readHeader(new(safetensors.Headers), bytes.NewReader(file[:1000]), int64(len(file))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short file: %v", err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"pointer": lfsPointer + "v1\n", "empty": "", "short": "1234567"} {
		path := filepath.Join(dir, name+".safetensors")
		must(t, os.WriteFile(path, []byte(content), 0o666))
		_, err := OpenDF11Local(t.Context(), path, 0)
		if invalid := (*InvalidError)(nil); !errors.As(err, &invalid) || !strings.Contains(err.Error(), name+".safetensors: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamagedHeader checks that a damaged copy in the shared cache isn't blamed on the model.
func TestDamagedHeader(t *testing.T) {
	const name = "model.safetensors"
	header := `{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}   `
	srv := hubtest.Start(t)
	srv.AddRepo("a/df11", map[string][]byte{
		"config.json": []byte(`{"dfloat11_config": {"version": "0.5.0", "threads_per_block": [512], "bytes_per_thread": 8, "pattern_dict": {"x": []}}}`),
		name:          append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header+"1"...),
	})
	cache := t.TempDir()
	file := srv.Files("a/df11", "main")[name]
	blobs := filepath.Join(cache, "models--a--df11", "blobs")
	must(t, errors.Join(os.MkdirAll(blobs, 0o777), os.WriteFile(filepath.Join(blobs, file.SHA256), make([]byte, file.Size), 0o666)))
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: srv.URL, Token: "hf_test"}, CacheDir: cache})
	must(t, err)
	d, err := OpenDF11Hub(t.Context(), c, "a/df11", "", 0, 0)
	must(t, err)
	defer d.Close()
	s, ok := d.Section("x")
	if b, err := io.ReadAll(s); !ok || err != nil || string(b) != "1" {
		t.Errorf("%q, %v", b, err)
	}
}

// must ends the test on an error.
var must = world.Must

// A card names its original in the ways in which the Hub's tools write YAML.
func TestOriginalOf(t *testing.T) {
	for front, want := range map[string]string{
		"base_model: org/m":                                 "org/m",
		"base_model: 'org/m'":                               "org/m",
		"base_model:\n- org/m":                              "org/m",
		"base_model:\r\n  - \"org/m\"\r\nlicense: mit":      "org/m",
		"base_model: [org/m]":                               "org/m",
		"base_model: org/m\nbase_model_relation: quantized": "org/m",
		"base_model: org/m\nbase_model_relation: finetune":  "",
		"base_model:\n- org/m\n- org/n":                     "",
		"base_model: [org/m, org/n]":                        "",
		"base_model: org/m\nbase_model: org/n":              "",
		"x: |\n  base_model: org/m":                         "",
		"base_model: no repo":                               "",
		"license: mit":                                      "",
	} {
		if got := originalOf([]byte("---\n" + front + "\n---\n\nbase_model: org/text\n")); got != want {
			t.Errorf("%q: %q, want %q", front, got, want)
		}
	}
	if got := originalOf([]byte("base_model: org/m\n")); got != "" {
		t.Errorf("without front matter: %q", got)
	}
}

// TestManyConfigs checks that a repo with a config.json in each of many folders costs a bounded
// number of requests.
func TestManyConfigs(t *testing.T) {
	files := map[string][]byte{"config.json": []byte("{}")}
	for i := range 300 {
		files[fmt.Sprintf("part%d/config.json", i)] = []byte("{}")
	}
	srv := hubtest.Start(t)
	srv.AddRepo("org/many", files)
	c, err := hub.New(hub.Options{Connection: hub.Connection{Endpoint: srv.URL}})
	world.Must(t, err)
	if _, err := OpenDF11Hub(t.Context(), c, "org/many", "", 0, 1<<20); err == nil || !strings.Contains(err.Error(), "more than 100 folders") {
		t.Errorf("the error is %v", err)
	}
	if n := len(srv.Requests()); n > 250 {
		t.Errorf("%d requests", n)
	}
}

// TestListingsFitTheBudget checks that a source and a DF11 model with more files than the memory
// budget can list are refused.
func TestListingsFitTheBudget(t *testing.T) {
	for n, good := range map[int]bool{1000: true, 1001: false} {
		for _, memory := range []int64{0, 1000 * perFile} {
			f, err := newFiles(newLocal(""), make([]plan.File, n))
			must(t, err)
			if err := f.limit(memory); (err == nil) != (good || memory == 0) {
				t.Errorf("%d files in %d bytes: %v", n, memory, err)
			}
		}
	}
	f, err := newFiles(newLocal(""), make([]plan.File, 1001))
	must(t, err)
	_, _, err = openSource(t.Context(), f, &Model{}, plan.Options{}, 1000*perFile)
	if _, ok := errors.AsType[*MemoryError](err); !ok {
		t.Error("a source:", err)
	}
	err = (&DF11{files: f}).load(t.Context(), 2*1000*perFile+BaseMemory)
	if _, ok := errors.AsType[*MemoryError](err); !ok {
		t.Error("a DF11 model:", err)
	}
}

// TestSizesAddUp checks that no sum of the sizes of a model's files overflows.
func TestSizesAddUp(t *testing.T) {
	for _, sizes := range [][]int64{{1<<63 - 1}, {1<<63 - 1, 1}, {1 << 62, 1 << 62}, {1 << 59, 1 << 59, 1}} {
		var list []plan.File
		for i, size := range sizes {
			list = append(list, plan.File{Path: strconv.Itoa(i), Size: size})
		}
		if _, err := newFiles(nil, list); err == nil {
			t.Errorf("%d is accepted", sizes)
		}
	}
	if _, err := newFiles(nil, []plan.File{{Path: "a", Size: 1 << 59}, {Path: "b", Size: 1 << 59}, {Path: "c", Size: -1}}); err != nil {
		t.Error(err)
	}
}

// TestTooManyFiles checks that a source of too many files is refused with what helps.
func TestTooManyFiles(t *testing.T) {
	if _, err := newFiles(nil, make([]plan.File, plan.MaxFiles)); err != nil {
		t.Error(err)
	}
	if _, err := newFiles(nil, make([]plan.File, plan.MaxFiles+1)); hint.Of(err) != hint.ModelAlone {
		t.Error(err, hint.Of(err))
	}
}
