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

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// DF11 is a DF11 model that is there already: a folder, a file, or a Hub repo at one commit. It is
// read only.
type DF11 struct {
	// Name is the folder's path or the repo's id; Commit is "" for a folder.
	Name   string
	Commit string
	// Dir is the folder of the model that users give to the official loader: the folder of the
	// config.json with dfloat11_config. It is "" unless the model is a pipeline with its DF11 part
	// in a folder.
	Dir string
	// Dict is the pattern dict of that config.json; nil if there is none, as beside a single file
	// for ComfyUI.
	Dict catalog.PatternDict
	// Manifest is the model's df11-manifest.json; nil if there is none, as in repos that others
	// made.
	Manifest *metadata.Manifest
	// CardModel is the Hub id of the original by base_model of the card; "" if the card names none.
	// CardParts are the components of a pipeline as which the code of the card loads the model.
	CardModel string
	CardParts []string

	*files
	folder  string            // of its files; "" for a repo
	loaded  []plan.WeightFile // the weight files that a loader reads
	tensors map[string]Stored // of the weight files, by name
}

// Stored is one tensor of a DF11 model and the file it lies in.
type Stored struct {
	File string
	safetensors.Tensor
	at int64 // offset in the file
}

// noPart are the folders in a DF11 folder that are no part of the model, since Git, a download and
// a conversion keep their notes there.
var noPart = []string{".git", ".cache/huggingface", names.StateDir}

// OpenDF11Local opens a DF11 model on this machine: a folder, or one .safetensors file, as ComfyUI
// has them. Whatever lies beside a file is no part of the model. A manifest must fit into the
// memory budget; 0 is none.
func OpenDF11Local(ctx context.Context, name string, memory int64) (*DF11, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if plan.IsSafetensors(name) && !st.IsDir() {
		f, err := newFiles(newLocal(filepath.Dir(name)),
			[]plan.File{{Path: filepath.Base(name), Size: st.Size()}})
		if err = cmp.Or(err, disk.Regular(name, st.Mode())); err != nil {
			return nil, err
		}
		return openDF11(ctx, &DF11{Name: name, folder: filepath.Dir(name), files: f}, memory)
	}
	f, err := listFolder(name, func(rel string) bool { return !slices.Contains(noPart, rel) },
		func(rel string) error {
			return Invalidf(rel,
				"a link to a folder: it is not followed, so what a loader finds there is not known")
		})
	if err != nil {
		return nil, err
	}
	return openDF11(ctx, &DF11{Name: name, folder: name, files: f}, memory)
}

// openDF11 completes d by what its files say. On an error it closes them.
func openDF11(ctx context.Context, d *DF11, memory int64) (*DF11, error) {
	if err := d.load(ctx, memory); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// load opens all weight files, and reads config, manifest, card, and the header of every weight
// file that the official loader reads.
func (d *DF11) load(ctx context.Context, memory int64) error {
	var weights []string
	for _, file := range d.list {
		if plan.IsSafetensors(file.Path) {
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
	return d.readHeaders(ctx, d.weightsIn(d.Dir))
}

func (d *DF11) readManifest(ctx context.Context, memory int64) error {
	file, ok := d.File(names.Manifest)
	if !ok {
		return nil
	}
	limit := metadata.MaxManifestBytes(memory)
	if memory > 0 && file.Size > limit {
		return fmt.Errorf("%s has %d bytes: to read more than %d needs more --memory", file.Path,
			file.Size, limit)
	}
	b, err := d.read(ctx, file.Path, limit)
	if err != nil {
		return err
	}
	if d.Manifest, err = metadata.ParseManifest(b, memory); err != nil {
		return Invalidf(names.Manifest, "%v", err)
	}
	return nil
}

// loadedAs matches the code of a card that makes the model a component of a pipeline: as the
// official cards have it, or ours.
var loadedAs = regexp.MustCompile(`bfloat16_model=pipe\.(\w+)|(\w+)=part, torch_dtype`)

// readCard finds what the card says of the original. It names a model as the original if it names
// one repo alone, with no other relation than a conversion.
func (d *DF11) readCard(ctx context.Context) error {
	text, front, err := d.card(ctx)
	base, relation := front.Strings("base_model"), front.String("base_model_relation")
	if len(base) == 1 && names.CheckNewRepo(base[0]) == nil &&
		(relation == "" || relation == metadata.RelationQuantized) {
		d.CardModel = base[0]
	}
	for _, m := range loadedAs.FindAllSubmatch(text, -1) {
		d.CardParts = append(d.CardParts, string(m[1])+string(m[2]))
	}
	return err
}

// readHeaders finds the tensors of the weight files. A header that is wrong is an InvalidError; one
// that could not be read says nothing of the model.
func (d *DF11) readHeaders(ctx context.Context, weights []plan.File) (err error) {
	if d.loaded, err = d.headers(ctx, weights); err != nil {
		header, ok := errors.AsType[*headerError](err)
		if ok && !ofHub(err) && ctx.Err() == nil {
			return Invalidf(header.file, "%v", header.err)
		}
		return err
	}
	d.tensors = map[string]Stored{}
	for _, w := range d.loaded {
		for _, t := range w.Header.Tensors {
			if other, twice := d.tensors[t.Name]; twice {
				return Invalidf(w.Path, "tensor %s is in %s as well", t.Name, other.File)
			}
			d.tensors[t.Name] = Stored{w.Path, t, w.Header.DataStart() + t.Begin}
		}
	}
	return nil
}

// Anew has the weight files of a repo fetched anew where they are read again; it is false where
// that would read the same bytes. No hash covers the ranges that are read of them, so a bit may
// have become wrong on its way: a fault is told if it is found twice.
func (d *DF11) Anew(ctx context.Context) (fetched bool) {
	for _, w := range d.loaded {
		fetched = d.anew(ctx, w.Path) || fetched
	}
	return fetched
}

// WeightFiles are the weight files that the official loader reads, which lie in Dir, in the order
// of their names.
func (d *DF11) WeightFiles() []plan.WeightFile { return d.loaded }

// Local is the model's folder or file on this machine; "" for a repo.
func (d *DF11) Local() string {
	if d.folder == "" {
		return ""
	}
	return d.Name
}

// Tensors lists the names of all tensors, sorted.
func (d *DF11) Tensors() []string { return slices.Sorted(maps.Keys(d.tensors)) }

// Tensor finds a tensor by its name.
func (d *DF11) Tensor(name string) (Stored, bool) {
	t, ok := d.tensors[name]
	return t, ok
}

// Section is the bytes of one tensor.
func (d *DF11) Section(name string) (*io.SectionReader, bool) {
	t, ok := d.tensors[name]
	if !ok {
		return nil, false
	}
	return io.NewSectionReader(d.weights(t.File), t.at, t.NBytes()), true
}

// Original is the Hub repo that this model was made from and its commit, by the manifest, else by
// the card; "" for what they do not name. Whoever made the model wrote them.
func (d *DF11) Original() (repo, commit string) {
	if m := d.Manifest; m != nil && m.Source.Repo != "" {
		return m.Source.Repo, m.Source.Commit
	}
	return d.CardModel, ""
}

// Layout is the layout that the manifest states; "" if there is none.
func (d *DF11) Layout() string {
	if d.Manifest == nil {
		return ""
	}
	return d.Manifest.Plan.Layout
}
