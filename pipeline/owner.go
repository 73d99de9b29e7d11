package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// An owner tells whose the weight files of a target are. They are this conversion's if a journal or a manifest there says
// that this plan made them, or another plan of the same source: for another commit, or with other flags.
type owner struct {
	digest string          // of the plan
	source string          // Hub repo that the weights come from; "" if it is not known
	names  map[string]bool // weight files of the plan
}

func (o *Options) owner() owner {
	w := owner{digest: o.Plan.Digest(), source: o.baseModel(), names: map[string]bool{}}
	for _, f := range o.Plan.OutputFiles {
		w.names[f.Path] = true
	}
	for _, f := range o.Plan.Components {
		if isWeightFile(f.Path) {
			w.names[f.Path] = true
		}
	}
	return w
}

// isWeightFile tells the files that a loader reads.
func isWeightFile(name string) bool { return strings.HasSuffix(name, ".safetensors") }

func (w owner) is(digest, source string) bool {
	return digest == w.digest || source != "" && source == w.source
}

// ofJournal lists the files that a journal claims; none if it is torn or somebody else's.
func (w owner) ofJournal(b []byte) []string {
	var f ledgerFile
	if err := json.Unmarshal(b, &f); err != nil || !w.is(f.Plan, f.Source) {
		return nil
	}
	names := f.Claims
	for _, o := range f.Outputs {
		names = append(names, o.Path)
	}
	return names
}

// ofManifest lists the files of a finished conversion; none if it is somebody else's. m may be nil.
func (w owner) ofManifest(m *metadata.Manifest) []string {
	if m == nil || !w.is(m.Plan.Digest, m.Source.Repo) {
		return nil
	}
	var names []string
	for _, o := range m.Outputs {
		names = append(names, o.Path)
	}
	return names
}

// take judges the weight files that were found in a target, of which journals and m, the manifest there or nil, name the
// owned ones: it gives what this run's journal has to claim, and an error for files of others, unless force allows them.
func (w owner) take(where string, found []string, owned map[string]bool, m *metadata.Manifest, force bool) (claims []string, err error) {
	if !force {
		err = w.refuse(where, found, owned, m)
	}
	return w.claims(found, owned), err
}

// claims lists what a journal has to claim: the plan's files, and what former plans have left of theirs.
func (w owner) claims(found []string, owned map[string]bool) []string {
	all := maps.Clone(w.names)
	for _, name := range found {
		if owned[name] {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// refuse gives an error if one of the weight files of a target is not this conversion's. m is the manifest there, or nil.
func (w owner) refuse(where string, found []string, owned map[string]bool, m *metadata.Manifest) error {
	e := &ForeignFilesError{Where: where}
	for _, name := range slices.Sorted(slices.Values(found)) {
		switch {
		case owned[name]:
		case w.names[name]:
			e.Overwritten = append(e.Overwritten, name)
		default:
			e.Files = append(e.Files, name)
		}
	}
	if len(e.Files)+len(e.Overwritten) == 0 {
		return nil
	}
	if m != nil && !w.is(m.Plan.Digest, m.Source.Repo) {
		e.Of = m.Source.Repo
	}
	return e
}

// ForeignFilesError says that an output folder or repo holds weights that this conversion has not made there. The loader
// reads every .safetensors file it finds (docs/format.md §13), so Files would end up in the model; Overwritten have the
// names of outputs.
type ForeignFilesError struct {
	Where              string
	Files, Overwritten []string
	Of                 string // the source of the conversion that is there; "" if there is none or it is not known
}

func (e *ForeignFilesError) Error() string {
	s := fmt.Sprintf("%s holds other .safetensors files: %s", e.Where, summary(e.Files))
	if len(e.Overwritten) > 0 {
		s = fmt.Sprintf("%s holds .safetensors files that are not of this conversion and would be overwritten: %s", e.Where, summary(e.Overwritten))
	}
	if e.Of != "" {
		s += " (there is a conversion of " + e.Of + ")"
	}
	return s
}

// summary names the first few of a list.
func summary(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// SourceTargetError says that the result would take the place of its source.
type SourceTargetError struct{ Target string }

func (e *SourceTargetError) Error() string {
	return fmt.Sprintf("%s is the source's own: its files would be replaced", e.Target)
}

// isSourceRepo tells whether a repo of the target's Hub is the one that the weights come from.
func (o *Options) isSourceRepo(id string) bool {
	src, remote := o.Source.(remoteSource)
	return strings.EqualFold(id, o.baseModel()) && (!remote || src.hubClient().Endpoint() == o.Push.Hub.Endpoint())
}

// stillOf gives back the ledger of a finished conversion if it is one of the source as it is now, else nil. No commit pins
// a local file, and the plan knows nothing of its content but the header: it is read, and its sum counts as the published one.
func (o *Options) stillOf(ctx context.Context, l *ledger) (*ledger, error) {
	local, ok := o.Source.(localFiles)
	if l == nil || !ok {
		return l, nil
	}
	m := *o.Model
	m.SHA256 = slices.Clone(m.SHA256)
	for i, w := range m.Plan.Weights {
		if m.SHA256[i] == "" { // else the other target has asked for it before
			var err error
			if m.SHA256[i], err = sumLocal(ctx, local, i, w.Path, w.Size); err != nil {
				return nil, err
			}
		}
		if m.SHA256[i] != l.file(w.Path).SHA256 {
			return nil, nil
		}
	}
	o.Model = &m
	return l, nil
}

// refuseSourceFolder refuses the folder of a local source as the output folder, by whatever path: config.json and the
// remainder have the source's names. A single ComfyUI file may lie beside its source. No output takes the place of a file
// of the source anywhere.
func (o *Options) refuseSourceFolder() error {
	src, ok := o.Source.(*localSource)
	if !ok || o.OutDir == "" {
		return nil
	}
	folder, err := stats(os.Stat, src.dir, ".")
	if err != nil {
		return err
	}
	target, err := stats(os.Stat, o.OutDir, ".")
	if err != nil {
		return err
	}
	if o.Plan.Layout != plan.ComfyUI && anySame(folder, target) {
		return &SourceTargetError{o.OutDir}
	}
	read, written := []string{o.Plan.Config.Source}, []string{o.configPath()}
	for _, w := range o.Model.Plan.Weights {
		read = append(read, w.Path)
	}
	for _, f := range o.Plan.OutputFiles {
		written = append(written, f.Path)
	}
	from, err := stats(os.Lstat, src.dir, read...)
	if err != nil {
		return err
	}
	to, err := stats(os.Lstat, o.OutDir, written...)
	if err == nil && anySame(from, to) {
		return &SourceTargetError{o.OutDir}
	}
	return err
}

// stats describes those of the named files that are there.
func stats(stat func(string) (os.FileInfo, error), dir string, names ...string) (found []os.FileInfo, err error) {
	for _, name := range names {
		if name == "" {
			continue
		}
		info, err := stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil {
			found = append(found, info)
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return found, nil
}

// anySame tells whether two lists have a file in common.
func anySame(as, bs []os.FileInfo) bool {
	return slices.ContainsFunc(as, func(a os.FileInfo) bool {
		return slices.ContainsFunc(bs, func(b os.FileInfo) bool { return os.SameFile(a, b) })
	})
}
