package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// A DF11 is an existing DF11 model, open for reading: a folder, a file, or a Hub repo at one
// commit.
type DF11 struct {
	// Name is the folder's path or the repo's id. Commit is "" for a folder.
	Name   string
	Commit string
	// Open says that its Hub lets everyone read the repo.
	Open bool
	// Dir is the folder that users pass to the official loader: the one with the config.json that
	// has dfloat11_config. It's "" unless the model is a pipeline with its DF11 part in a folder.
	Dir string
	// Config is from that config.json. It's empty if there is none, such as for a single file for
	// ComfyUI.
	Config
	// Manifest is the model's df11-manifest.json. It's nil if there is none, such as in repos that
	// others made.
	Manifest *metadata.Manifest
	// CardModel is the Hub id of the original by the card's base_model, or "".
	CardModel string

	*files
	hub     *hub.Client       // of a repo
	folder  string            // of the files; "" for a repo
	odd     map[string]error  // what isn't a file, by path, and why
	loaded  []plan.WeightFile // the weight files that a loader reads
	tensors map[string]Stored // of the weight files, by name
}

// A Stored is one tensor of a DF11 model, and the file it's in.
type Stored struct {
	File string
	safetensors.Tensor
	at int64 // offset in the file
}

// noPart are folders in a DF11 folder that aren't part of the model: Git, downloads, and
// conversions keep their notes there.
var noPart = []string{".git", ".cache/huggingface", names.StateDir}

// OpenDF11Local opens a DF11 model on this machine: a folder, or one .safetensors file, as ComfyUI
// has them. Files next to that file aren't part of the model. A manifest must fit the memory
// budget. Headers and other small files must fit half of what the program leaves of it, because the
// original may be open, too. 0 means no budget.
func OpenDF11Local(ctx context.Context, name string, memory int64) (*DF11, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if reader.IsSafetensors(name) && !st.IsDir() {
		f, err := newFiles(newLocal(filepath.Dir(name)),
			[]plan.File{{Path: filepath.Base(name), Size: st.Size()}})
		if err = cmp.Or(err, disk.Regular(name, st.Mode())); err != nil {
			return nil, err
		}
		return openDF11(ctx, &DF11{Name: name, folder: filepath.Dir(name), files: f}, memory)
	}
	odd := map[string]error{}
	f, err := listFolder(name, func(rel string) bool { return !slices.Contains(noPart, rel) },
		func(rel string) error {
			return Invalidf(rel,
				"a link to a folder; links aren't followed, so its files weren't read")
		}, func(rel string, err error) (bool, error) {
			if rel == "." { // name itself
				return false, err
			}
			odd[rel] = err
			return false, nil
		})
	if err != nil {
		return nil, err
	}
	return openDF11(ctx, &DF11{Name: name, folder: name, files: f, odd: odd}, memory)
}

// openDF11 fills in d from its files. On an error it closes them.
func openDF11(ctx context.Context, d *DF11, memory int64) (*DF11, error) {
	if err := d.checkOdd(ctx, d.load(ctx, memory)); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Odd lists what a folder has in place of files and isn't one, such as links to nothing and pipes.
// The model doesn't need any of them.
func (d *DF11) Odd() []string { return slices.Sorted(maps.Keys(d.odd)) }

// checkOdd returns an error if something odd is in place of a file that the model needs. err is
// load's. If the folder isn't a DF11 model, that counts, unless something odd may be why.
func (d *DF11) checkOdd(ctx context.Context, err error) error {
	none := errors.Is(err, ErrNoDF11Config)
	if len(d.odd) == 0 || err != nil && !none {
		return err
	}
	odd := d.Odd()
	var outputs []string
	if d.Manifest != nil {
		for _, o := range d.Manifest.Outputs {
			outputs = append(outputs, o.Path)
		}
	}
	readers := reader.NewFolder(reader.Files{Paths: append(d.paths(), odd...), Unusable: odd,
		Read: func(name string) []byte {
			b, err := d.small(ctx, name, maxConfigBytes)
			if err != nil {
				return []byte{} // a .gitignore that can't be read excuses no odd file
			}
			return append([]byte{}, b...)
		}}, nil)
	for _, name := range odd {
		switch makes := name == names.Config || name == names.Manifest || reader.IsLoaded(name) ||
			reader.Loads(d.Dir, name); {
		case none && makes:
			return d.odd[name]
		case !none && (makes || slices.Contains(outputs, name) || readers.Opens(name)):
			return Invalidf("", "%w", d.odd[name])
		}
	}
	return err
}

// load opens all weight files. It reads the config, the manifest, the card, and the headers of the
// weight files that the official loader reads.
func (d *DF11) load(ctx context.Context, memory int64) error {
	if err := d.limit(TableMemory(memory, 2)); err != nil {
		return err
	}
	var weights []string
	for _, file := range d.list {
		if reader.IsSafetensors(file.Path) {
			weights = append(weights, file.Path)
		}
	}
	if err := d.hold(weights); err != nil {
		return err
	}
	if err := d.readConfig(ctx); err != nil {
		return err
	}
	if err := d.readManifest(ctx, memory); err != nil {
		return err
	}
	if err := d.readCard(ctx); err != nil {
		return err
	}
	if err := d.readHeaders(ctx, d.weightsIn(d.Dir)); err != nil {
		return err
	}
	if d.Dict == nil && d.Manifest == nil && len(d.CodedUnits()) == 0 {
		return ErrNoDF11Config
	}
	return nil
}

func (d *DF11) readManifest(ctx context.Context, memory int64) error {
	file, ok := d.File(names.Manifest)
	if !ok {
		return nil
	}
	if err := fits(file, metadata.MaxManifestBytes(0)); err != nil {
		return err
	}
	most := metadata.MaxManifestBytes(memory)
	if file.Size > most {
		return &MemoryError{file.Path, file.Size, most}
	}
	b, err := d.read(ctx, file.Path, most)
	if err != nil {
		return err
	}
	d.Manifest, err = metadata.ParseManifest(b, memory)
	if _, newer := errors.AsType[*metadata.NewerError](err); newer {
		return fmt.Errorf("can't check: made by a newer program: %s: %w", file.Path, err)
	} else if errors.Is(err, metadata.ErrMemory) {
		return fmt.Errorf("%s: %w", file.Path, err)
	} else if err != nil {
		return Invalidf(names.Manifest, "%v", err)
	}
	return nil
}

// The lines of a card's front matter that name the original, as the Hub's tools write them. A page
// reads cards too, and a whole reader of YAML would be 5% of what it loads.
var (
	front     = regexp.MustCompile(`(?s)\A\x{FEFF}?\s*---[ \t]*\r?\n.*?\n---`)
	baseModel = regexp.MustCompile(
		`(?m)^base_model:[ \t]*(?:\n[ \t]*-[ \t]*|\[)?["']?([^\s"',\]]+)["']?\]?[ \t]*$(\n[ \t]*-[ \t])?`)
	relationLine = regexp.MustCompile(`(?m)^base_model_relation:(.*)$`)
)

// originalOf returns the original that a card names: exactly one repo, and no relation other than a
// conversion. It returns "" if the card names none.
func originalOf(card []byte) string {
	base, head := baseOf(card)
	relation := relationLine.FindStringSubmatch(head)
	if relation != nil && strings.Trim(relation[1], ` "'`) != metadata.RelationQuantized {
		return ""
	}
	return base
}

// baseOf returns the only repo that a card names as its base model, or "", and the card's front
// matter.
func baseOf(card []byte) (base, head string) {
	head = strings.ReplaceAll(string(front.Find(card)), "\r\n", "\n")
	found := baseModel.FindAllStringSubmatch(head, 2)
	if len(found) != 1 || found[0][2] != "" || names.CheckNewRepo(found[0][1]) != nil {
		return "", head
	}
	return found[0][1], head
}

// fits returns an error for a file of a DF11 model that is larger than any program writes it.
func fits(f plan.File, limit int64) error {
	if f.Size > limit {
		return Invalidf(f.Path, "it has %d bytes, more than the %d that it can have", f.Size, limit)
	}
	return nil
}

// readCard finds the original that the card names. A card that is larger than any program writes it
// names none.
func (d *DF11) readCard(ctx context.Context) error {
	if f, _ := d.File(names.Card); f.Size > maxConfigBytes {
		return nil
	}
	text, err := d.card(ctx)
	d.CardModel = originalOf(text)
	return err
}

// readHeaders finds the tensors of the weight files. A wrong header is an InvalidError. A header
// that couldn't be read says nothing about the model.
func (d *DF11) readHeaders(ctx context.Context, weights []plan.File) (err error) {
	if d.loaded, err = d.headers(ctx, weights); err != nil {
		if errors.Is(err, safetensors.ErrMemory) {
			return err
		}
		_, wrong := errors.AsType[*safetensors.HeaderError](err)
		_, pointer := errors.AsType[*plan.RefusedError](err)
		if wrong || pointer {
			return Invalidf("", "%w", err)
		}
		return err
	}
	d.tensors = map[string]Stored{}
	for _, w := range d.loaded {
		for _, t := range w.Header.Tensors {
			if other, twice := d.tensors[t.Name]; twice {
				return Invalidf(w.Path, "tensor %s is also in %s", t.Name, other.File)
			}
			d.tensors[t.Name] = Stored{w.Path, t, w.Header.DataStart() + t.Begin}
		}
	}
	return nil
}

// Refetch makes the next reads fetch a repo's weight files again. It returns false if they'd read
// the same bytes. No hash covers the ranges read from these files, so a bit may flip on the way.
// Report a fault only if you find it twice.
func (d *DF11) Refetch(ctx context.Context) (fetched bool) {
	for _, w := range d.loaded {
		fetched = d.Recheck(ctx, w.Path) || fetched
	}
	return fetched
}

// WeightFiles returns the weight files that the official loader reads, which are in Dir, by name.
func (d *DF11) WeightFiles() []plan.WeightFile { return d.loaded }

// Local returns the model's folder or file on this machine, or "" for a repo.
func (d *DF11) Local() string {
	if d.folder == "" {
		return ""
	}
	return d.Name
}

// IsFile reports whether the model is one file on this machine, whatever lies next to it.
func (d *DF11) IsFile() bool { return d.folder != "" && d.folder != d.Name }

// Tensors returns the names of all tensors, sorted.
func (d *DF11) Tensors() []string { return slices.Sorted(maps.Keys(d.tensors)) }

// CodedUnits returns the paths of the units stored as DF11, sorted.
func (d *DF11) CodedUnits() (paths []string) {
	for _, name := range d.Tensors() {
		if path, ok := strings.CutSuffix(name, "."+encoder.NameEncodedExponent); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// Tensor returns the tensor with that name.
func (d *DF11) Tensor(name string) (Stored, bool) {
	t, ok := d.tensors[name]
	return t, ok
}

// Section returns a reader of one tensor's bytes.
func (d *DF11) Section(name string) (*io.SectionReader, bool) {
	t, ok := d.tensors[name]
	if !ok {
		return nil, false
	}
	return io.NewSectionReader(d.weights(t.File), t.at, t.NBytes()), true
}

// Original returns the Hub repo that this model was made from, and its commit, by the manifest or
// else the card; "" if they don't say. These are claims by the model's maker.
func (d *DF11) Original() (repo, commit string) {
	if m := d.Manifest; m != nil && m.Source.Repo != "" {
		return m.Source.Repo, m.Source.Commit
	}
	return d.CardModel, ""
}

// Layout returns the layout that the manifest states, or "".
func (d *DF11) Layout() string {
	if d.Manifest == nil {
		return ""
	}
	return d.Manifest.Plan.Layout
}
