package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// WrongError says that something about a DF11 model is not as it must be.
type WrongError struct {
	File   string // "" for the model as a whole
	Detail string
}

func (e *WrongError) Error() string {
	if e.File == "" {
		return e.Detail
	}
	return e.File + ": " + e.Detail
}

func wrongf(file, format string, args ...any) error {
	return &WrongError{File: file, Detail: fmt.Sprintf(format, args...)}
}

// DF11 is a DF11 model that is there already: a folder or a Hub repo at one commit. It is read only.
type DF11 struct {
	// Name is the folder's path or the repo's id; Commit is "" for a folder.
	Name   string
	Commit string
	// Dir is the folder in it that the official loader is pointed at, where config.json with dfloat11_config lies: "" but
	// for a pipeline that has its DF11 part in a folder.
	Dir string
	// Dict is the pattern dict of that config.json; nil if there is none, as beside a single file for ComfyUI.
	Dict plan.PatternDict
	// Manifest is the model's df11-manifest.json; nil if there is none, as in repos that others made.
	Manifest *metadata.Manifest
	// BaseModel is what its card names as the original; "" if nothing.
	BaseModel string

	files   map[string]df11File
	tensors map[string]stored
	close   []func() error
}

// df11File is one of its files: the header is nil for those that are not weights.
type df11File struct {
	size   int64
	sha256 string // published; "" for a folder
	r      io.ReaderAt
	header *safetensors.Header
}

// stored is one tensor and the file it lies in.
type stored struct {
	file string
	safetensors.Tensor
}

// Close releases the files.
func (d *DF11) Close() error {
	var errs []error
	for _, c := range d.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// OpenDF11Folder opens a DF11 model in a local folder.
func OpenDF11Folder(dir string) (*DF11, error) {
	d := &DF11{Name: dir, files: map[string]df11File{}}
	found, err := listFolder(dir, true)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		r, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.Path)))
		if err != nil {
			d.Close()
			return nil, err
		}
		d.close = append(d.close, r.Close)
		d.files[f.Path] = df11File{size: f.Size, r: r}
	}
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))) }
	if err := d.describe(read); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// OpenDF11Hub opens a DF11 repo at one commit. Its files are read by ranges, in
// pieces that are kept for a while; headers are read at once, several at a time.
// Close it, so that nothing reads ahead any more.
func OpenDF11Hub(ctx context.Context, c *hub.Client, repo, revision string) (*DF11, error) {
	info, err := c.Info(ctx, repo, revision)
	if err != nil {
		return nil, err
	}
	d := &DF11{Name: info.ID, Commit: info.SHA, files: map[string]df11File{}}
	readers := newHubReaders(ctx, c)
	d.close = append(d.close, readers.Close)
	for _, f := range info.Files {
		ref := f.Ref(info.ID, info.SHA)
		d.files[f.Path] = df11File{size: f.Size, sha256: f.SHA256, r: readers.open(ref)}
	}
	read := func(name string) ([]byte, error) { return c.ReadFile(ctx, info.ID, info.SHA, name, maxJournalBytes) }
	if err := d.describe(read); err != nil {
		d.Close()
		return nil, err
	}
	if d.BaseModel == "" {
		d.BaseModel = cardBaseModel(info.CardData)
	}
	return d, nil
}

// describe reads config, manifest and card, and the header of every weight file that the official loader reads.
func (d *DF11) describe(read func(string) ([]byte, error)) error {
	if err := d.readConfig(read); err != nil {
		return err
	}
	if _, ok := d.files[manifestName]; ok {
		b, err := read(manifestName)
		if err != nil {
			return err
		}
		if d.Manifest, err = metadata.ParseManifest(b); err != nil {
			return wrongf(manifestName, "%v", err)
		}
		d.BaseModel = d.Manifest.Source.Repo
	}
	return d.readHeaders()
}

// readConfig finds the config.json with dfloat11_config: at the root, else in the one folder that has it.
func (d *DF11) readConfig(read func(string) ([]byte, error)) error {
	var found []string
	var plain error
	for _, name := range d.configs() {
		if len(found) > 0 && found[0] == "config.json" {
			break
		}
		b, err := read(name)
		if err != nil {
			return err
		}
		dict, err := dictOfConfig(b)
		switch {
		case errors.Is(err, errNoDF11Config):
			plain = cmp.Or(plain, wrongf(name, "%v", err))
		case err != nil:
			return wrongf(name, "%v", err)
		default:
			d.Dict, d.Dir = dict, strings.TrimSuffix(strings.TrimSuffix(name, "config.json"), "/")
			found = append(found, name)
		}
	}
	if len(found) > 1 {
		return fmt.Errorf("%d folders hold a DF11 model (%s): name one of them", len(found), strings.Join(found, ", "))
	}
	if _, atRoot := d.files["config.json"]; len(found) == 0 && atRoot {
		return plain
	}
	return nil
}

// configs lists the files that may be the config.json of a DF11 model: that at the root, then those of folders in it which
// hold weights.
func (d *DF11) configs() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		dir, base := path.Split(name)
		if base == "config.json" && (dir == "" || strings.Count(dir, "/") == 1 && len(d.weightFiles(path.Clean(dir))) > 0) {
			names = append(names, name)
		}
	}
	if i := slices.Index(names, "config.json"); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "config.json")
	}
	return names
}

// weightFiles lists the safetensors files right in a folder, "" for the root. The official loader reads these, whatever an
// index says, and none below (docs/format.md §13).
func (d *DF11) weightFiles(dir string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if path.Ext(name) == ".safetensors" && path.Dir(name) == path.Clean(dir) {
			names = append(names, name)
		}
	}
	return names
}

// errNoDF11Config says that a config.json is not that of a DF11 model.
var errNoDF11Config = errors.New("no dfloat11_config: not a finished DF11 model")

// dictOfConfig takes dfloat11_config.pattern_dict out of a config.json, order kept.
func dictOfConfig(b []byte) (plan.PatternDict, error) {
	var c struct {
		DF11 *struct {
			Threads []int           `json:"threads_per_block"`
			Bytes   int             `json:"bytes_per_thread"`
			Dict    json.RawMessage `json:"pattern_dict"`
		} `json:"dfloat11_config"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, err
	}
	if c.DF11 == nil {
		return nil, errNoDF11Config
	}
	if !slices.Equal(c.DF11.Threads, []int{512}) || c.DF11.Bytes != 8 {
		return nil, fmt.Errorf("threads_per_block %v and bytes_per_thread %d, want [512] and 8", c.DF11.Threads, c.DF11.Bytes)
	}
	return plan.ParsePatternDict(c.DF11.Dict)
}

// readHeaders reads the headers of the weight files that the official loader reads, several at a time.
func (d *DF11) readHeaders() error {
	names := d.weightFiles(d.Dir)
	headers, errs := make([]*safetensors.Header, len(names)), make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(headersAtOnce)
	for i, name := range names {
		g.Go(func() error {
			headers[i], errs[i] = safetensors.ReadHeader(d.files[name].r, d.files[name].size)
			return nil
		})
	}
	_ = g.Wait() // errs has them by file, so that the same one is told each time
	d.tensors = map[string]stored{}
	for i, name := range names {
		if errs[i] != nil {
			return headerError(name, errs[i])
		}
		if err := d.addTensors(name, headers[i]); err != nil {
			return err
		}
	}
	return nil
}

// headerError tells a header that is wrong from one that could not be read.
func headerError(name string, err error) error {
	if e := (*hub.Error)(nil); errors.As(err, &e) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("header of %s: %w", name, err)
	}
	return wrongf(name, "%v", err)
}

func (d *DF11) addTensors(name string, h *safetensors.Header) error {
	f := d.files[name]
	f.header = h
	d.files[name] = f
	for _, t := range h.Tensors {
		if other, twice := d.tensors[t.Name]; twice {
			return wrongf(name, "tensor %s is in %s as well", t.Name, other.file)
		}
		d.tensors[t.Name] = stored{name, t}
	}
	return nil
}

// section is the bytes of one tensor.
func (d *DF11) section(name string) (*io.SectionReader, bool) {
	t, ok := d.tensors[name]
	if !ok {
		return nil, false
	}
	f := d.files[t.file]
	return io.NewSectionReader(f.r, f.header.DataStart()+t.Begin, t.NBytes()), true
}

// Exists tells whether a path names something local.
func Exists(p string) bool {
	_, err := os.Stat(p)
	return !errors.Is(err, fs.ErrNotExist)
}

// Original names what the model was made from, as far as it says so itself.
func (d *DF11) Original() string {
	if m := d.Manifest; m != nil && m.Source.Repo != "" {
		if m.Source.Commit != "" {
			return m.Source.Repo + "@" + m.Source.Commit
		}
		return m.Source.Repo
	}
	return d.BaseModel
}

// Layout is the layout that the manifest states; "" if there is none.
func (d *DF11) Layout() string {
	if d.Manifest == nil {
		return ""
	}
	return d.Manifest.Plan.Layout
}

// cardBaseModel reads base_model of a card's front matter, which may be a string or a list.
func cardBaseModel(card map[string]any) string {
	switch b := card["base_model"].(type) {
	case string:
		return b
	case []any:
		if len(b) == 1 {
			s, _ := b[0].(string)
			return s
		}
	}
	return ""
}
