package back

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// An OtherFile is a file of a DF11 model or its original that is not the same in both. Its text is
// its path.
type OtherFile struct {
	Path string
	How  string // such as Changed
}

// MarshalText returns the path.
func (o OtherFile) MarshalText() ([]byte, error) { return []byte(o.Path), nil }

// Values of OtherFile.How.
const (
	Changed = "changed"
	Added   = "added"
	Missing = "missing"
)

// A ComponentError says that the weights of another component of a pipeline are not the original's.
type ComponentError struct{ OtherFile }

func (e *ComponentError) Error() string {
	return e.Path + ": these weights of another component are " + e.How
}

// Subject returns model.OfPair.
func (e *ComponentError) Subject() string { return model.OfPair }

// Files says how the files of a model that aren't its weights compare with the original's.
type Files struct {
	// Beside lists the files that differ from the original's, those that the original lacks, and
	// those that the model lacks although a conversion would have copied them.
	Beside []OtherFile `json:"beside"`
	// LeftOut lists the original's files that the model lacks because no conversion copies them.
	LeftOut []plan.Skipped `json:"left_out,omitempty"`
	// NotCompared lists the model's files that nothing was compared with, because a conversion or a
	// Hub writes them.
	NotCompared []string `json:"not_compared,omitempty"`
}

// notCompared are the files that a conversion or a Hub writes, each time in its own way.
var notCompared = []string{names.Card, names.Chart, names.Manifest, names.Attributes}

// Main returns what the original's main has to compare a model with. Use it if the model itself
// named the original's commit: with a pull request, anyone can add commits to a repo, so that
// commit counts only for the weights. Main also returns the weight files that main lacks or has in
// another version.
func (p Pair) Main(ctx context.Context) (_ *plan.Source, other []string, err error) {
	main, err := p.Source.Main(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range p.Model.Original().Listing.Weights {
		if !slices.Contains(main.Files, w.File) {
			other = append(other, w.Path)
		}
	}
	here := p.Model.Listing
	main.Weights, main.Dir, main.Behind = here.Weights, here.Dir, here.Behind
	if p.Model.From != nil { // only these are of the one file, too
		main.Files = slices.DeleteFunc(main.Files,
			func(f plan.File) bool { return !reader.IsNotice(f.Path) })
		main.ModelIndex = nil
	}
	return &main, other, nil
}

// original returns the listing to compare files with: that of main, or that of the original's
// commit.
func (c *Checker) original() *plan.Source {
	if c.main != nil {
		return c.main
	}
	return &c.Model.Listing
}

// Layout returns the layout of the model: the plan's, or else the one that the manifest states, or
// else the original's.
func (c *Checker) Layout() catalog.Layout {
	switch {
	case c.Plan != nil:
		return c.Plan.Layout
	case c.Model == nil:
		return catalog.Layout(c.DF11.Layout())
	}
	return cmp.Or(catalog.Layout(c.DF11.Layout()),
		reader.FamilyOf(c.Model.Listing.Weights[0].Path))
}

// CompareFiles compares every file except those of c.DF11.WeightFiles with the original's file of
// that name, by hash. What isn't a file, such as a broken link, is never the same. It returns a
// ComponentError for the first differing weights of a pipeline's other
// component. Unless deep, it compares weights without a published hash only by size.
func (c *Checker) CompareFiles(ctx context.Context, deep bool) error {
	if err := c.checkNames(); err != nil {
		return err
	}
	carried, err := plan.Carry(c.original(), c.Layout())
	if err != nil {
		return err
	}
	wanted, made, unknown, err := c.wanted(carried)
	if err != nil {
		return err
	}
	compared := map[string]bool{} // by other checks, tensor by tensor
	for _, w := range c.DF11.WeightFiles() {
		compared[w.Path] = true
	}
	for _, f := range c.DF11.Listing() {
		want, isWanted := wanted[f.Path]
		switch {
		case compared[f.Path]:
		case slices.Contains(unknown, f.Path):
			c.found.NotCompared = append(c.found.NotCompared, f.Path)
		case !isWanted:
			c.differs(f.Path, Added)
		default:
			same, err := c.isSame(ctx, f, want, deep)
			if err != nil {
				return err
			}
			if !same {
				c.differs(f.Path, Changed)
			}
		}
	}
	for _, name := range c.DF11.Odd() {
		_, isWanted := wanted[name]
		switch {
		case slices.Contains(unknown, name):
			c.found.NotCompared = append(c.found.NotCompared, name)
		case isWanted:
			c.addBeside(name, Changed)
		default:
			c.addBeside(name, Added)
		}
	}
	c.addMissing(carried, made)
	if c.component != nil {
		return c.component
	}
	return nil
}

// CompareWithManifest compares the files of a model with its manifest, by hash, if no one names the
// original. Unless deep, it compares weights that no loader reads only by size. A weight file that
// a loader reads, and that the manifest doesn't list, is a fault. FreeHashes finds the files that
// are missing.
func (c *Checker) CompareWithManifest(ctx context.Context, deep bool) error {
	if err := c.checkNames(); err != nil || c.DF11.Manifest == nil {
		return err
	}
	listed := c.DF11.Manifest.Listed()
	for _, w := range c.DF11.WeightFiles() {
		if _, ok := listed[w.Path]; !ok {
			return model.Invalidf(w.Path, "the manifest doesn't list it, but a loader reads it")
		}
		delete(listed, w.Path)
	}
	isWeights := func(f plan.File) bool {
		return slices.ContainsFunc(c.DF11.WeightFiles(),
			func(w plan.WeightFile) bool { return w.Path == f.Path })
	}
	for _, f := range c.DF11.Listing() {
		o, ok := listed[f.Path]
		switch {
		case isWeights(f):
		case slices.Contains(notCompared, f.Path):
			c.found.NotCompared = append(c.found.NotCompared, f.Path)
		case !ok:
			c.addBeside(f.Path, Added)
		default:
			same, err := c.isListed(ctx, f, o, deep)
			if err != nil {
				return err
			}
			if !same {
				c.addBeside(f.Path, Changed)
			}
		}
	}
	return nil
}

// isListed reports whether a file is as the manifest lists it. Unless deep, it compares only the
// size of weights without a published hash.
func (c *Checker) isListed(ctx context.Context, f plan.File, o metadata.OutputFile,
	deep bool) (bool, error) {
	switch {
	case f.Size != o.Size:
		return false, nil
	case o.Blob != "" && len(f.ETag) == len(o.Blob):
		return f.ETag == o.Blob, nil
	case f.ETag == "" && !deep && isPlainWeights(f.Path):
		return true, nil
	}
	sum, err := model.Sum(ctx, c.DF11.OpenFile, f, o.SHA256)
	return sum == o.SHA256, err
}

// isPlainWeights reports whether a file is weights, which are slow to read.
func isPlainWeights(name string) bool {
	return reader.IsLoaded(name) && path.Ext(name) != ".json"
}

// CheckAlone returns nil if decoding the model without its original restores the original's files,
// and otherwise the error of CheckDecoding. If that's the manifest's fault, the manifest is one of
// the files that differ. The pair must hold the same weights.
func (c *Checker) CheckAlone(files []model.File) error {
	err := c.CheckDecoding(files)
	c.noteManifest(err)
	return err
}

// CompareListed compares the files that the manifest lists with the original's, as far as their
// SHA-256 are known. If they differ, the manifest is one of the files that differ.
func (c *Checker) CompareListed() {
	if listed, _, err := ofManifest(c.DF11, 1, nil); err == nil {
		c.noteManifest(compareFiles(listed, c.Model.Original().Files()))
	}
}

// noteManifest notes that the manifest differs if err is the manifest's fault.
func (c *Checker) noteManifest(err error) {
	if _, differs := errors.AsType[*ManifestError](err); differs {
		c.manifestDiffers = true
	}
}

func (c *Checker) addBeside(name, how string) {
	c.found.Beside = append(c.found.Beside, OtherFile{name, how})
}

// addMissing finds the original's files that the model lacks, whatever the reason, and those that a
// conversion makes for loaders. It skips what a conversion leaves in a local original. From a repo,
// a conversion takes everything that has a place in the result. A model that is one file has no
// others.
func (c *Checker) addMissing(original plan.Carried, made []string) {
	left := original.NotCopied
	for _, name := range original.Stay {
		left = append(left, plan.Skipped{Path: name,
			Why: "no reader of the model opens it, or .gitignore names it"})
	}
	for _, f := range slices.Concat(original.Components, original.Copied) {
		if c.DF11.IsFile() {
			left = append(left, plan.Skipped{Path: f.Path, Why: "the model is one file"})
		} else if at := c.pathHere(f.Path); !c.has(at) {
			c.differs(at, Missing)
		}
	}
	for _, name := range made {
		if !c.has(name) && !c.DF11.IsFile() && c.Layout() != catalog.ComfyUI {
			c.addBeside(name, Missing)
		}
	}
	for _, f := range left {
		switch at := c.pathHere(f.Path); {
		case c.has(at) || slices.Contains(notCompared, f.Path):
		case f.Lost && !c.DF11.IsFile():
			c.addBeside(at, Missing)
		default:
			f.Path = at
			c.found.LeftOut = append(c.found.LeftOut, f)
		}
	}
}

// has reports whether the model has something of that name, even if it's not a file.
func (c *Checker) has(name string) bool {
	_, ok := c.DF11.File(name)
	return ok || slices.Contains(c.DF11.Odd(), name)
}

// wanted returns the files that a model may have next to its weights, by their paths in the model.
// They're the original's, and those in made, which a conversion makes for loaders. The files in
// unknown can't be compared with anything.
func (c *Checker) wanted(original plan.Carried) (wanted map[string]plan.File, made,
	unknown []string, err error) {
	wanted, unknown = map[string]plan.File{}, slices.Clone(notCompared)
	for _, f := range c.original().Files {
		wanted[c.pathHere(f.Path)] = f
	}
	add := func(name string, data []byte) {
		if data != nil {
			sum := sha256.Sum256(data)
			made = append(made, name)
			wanted[name] = plan.File{Path: name, Size: int64(len(data)),
				ETag: hex.EncodeToString(sum[:])}
		}
	}
	if !original.HasChart() {
		unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == names.Chart })
	}
	p, version := plan.Plan{Layout: c.Layout(), PatternDict: c.DF11.Dict}, plan.FormatVersion
	if c.DF11.Version == plan.ParametersVersion {
		version = plan.ParametersVersion
	}
	p.Config = c.config()
	switch {
	case c.Plan != nil:
		p.PatternDict, version = c.Plan.PatternDict, c.Plan.Version()
		named := c.asNamed()
		add(c.pathHere(named.RemainderIndex), metadata.RemainderIndex(named))
	case c.DF11.Manifest != nil:
		for _, o := range c.DF11.Manifest.Outputs {
			if o.Kind == metadata.KindIndex {
				unknown = append(unknown, o.Path)
			}
		}
	}
	if p.PatternDict == nil {
		return wanted, made, append(unknown, p.ConfigPath()), nil
	}
	// config.json is made from the one at the original's commit, so main must have that one
	if p.Config == "" || c.main == nil || c.isOnMain() {
		config, err := metadata.Config(&p, version, c.Model.Listing.Config)
		if err != nil {
			return nil, nil, nil, err
		}
		add(p.ConfigPath(), config)
	}
	return wanted, made, unknown, nil
}

// config returns the path of the original's config.json into which the dict goes, or "" if a
// conversion writes a new one. Other tools put the dict of a pipeline's component into that
// component's own config.
func (c *Checker) config() string {
	isOwn := c.Layout() == catalog.ComfyUI || c.Model.Listing.Dir != "" && c.DF11.Dir == ""
	if isOwn || c.Model.Listing.Config == nil {
		return ""
	}
	return path.Join(c.DF11.Dir, names.Config)
}

// asNamed returns a copy of the plan in which the remainder has the name that the model gives it:
// the official compressor's, if the model has none of our names.
func (c *Checker) asNamed() *plan.Plan {
	p := *c.Plan
	has := func(f plan.OutputFile) bool { return c.hasWeights(path.Base(f.Path)) }
	if !slices.ContainsFunc(p.RemainderFiles, has) && p.Layout != catalog.ComfyUI {
		p.Rest = p.OfficialRemainder()
	}
	return &p
}

// hasWeights reports whether a loader reads a file of that name as weights of the model.
func (c *Checker) hasWeights(base string) bool {
	return slices.ContainsFunc(c.DF11.WeightFiles(),
		func(w plan.WeightFile) bool { return path.Base(w.Path) == base })
}

// isOnMain reports whether main has the config.json that was read at the original's commit.
func (c *Checker) isOnMain() bool {
	source := path.Join(path.Dir(c.Model.Listing.Weights[0].Path), names.Config)
	return !slices.ContainsFunc(c.Model.Listing.Files, func(f plan.File) bool {
		return f.Path == source && !slices.Contains(c.main.Files, f)
	})
}

// isSame reports whether a file is the wanted one. It compares the hashes that both have. A file
// without a hash is read.
func (c *Checker) isSame(ctx context.Context, f, want plan.File, deep bool) (bool, error) {
	known := f.ETag != "" && len(f.ETag) == len(want.ETag)
	if f.Size != want.Size {
		return false, nil
	}
	if !known && !deep && isPlainWeights(f.Path) {
		return true, nil
	}
	like := cmp.Or(want.ETag, f.ETag)
	got, err := model.Sum(ctx, c.DF11.OpenFile, f, like)
	if err != nil {
		return false, err
	}
	sum, err := model.Sum(ctx, c.Source.OpenFile, want, like)
	return got == sum, err
}

// differs notes a file that isn't the same. If a pipeline may load the file for another component,
// differs sets the ComponentError instead. A model without model_index.json has no other
// components.
func (c *Checker) differs(name, how string) {
	isPipeline := c.has(names.ModelIndex) || how != Missing && c.ofPipeline()
	switch isPart := isPipeline && strings.Contains(name, "/") && reader.IsLoaded(name); {
	case !isPart:
		c.addBeside(name, how)
	case c.component == nil:
		c.component = &ComponentError{OtherFile{name, how}}
	}
}

// checkNames refuses two names that can't both exist on a case-insensitive file system.
func (c *Checker) checkNames() error {
	var paths []string
	for _, f := range c.DF11.Listing() {
		paths = append(paths, f.Path)
	}
	if other, name := plan.Collision(paths); name != "" {
		return model.Invalidf(name, "it and %s can't both exist on a case-insensitive file system",
			other)
	}
	return nil
}

// ofPipeline reports whether the original is a pipeline of several components.
func (c *Checker) ofPipeline() bool {
	return c.original().ModelIndex != nil && c.Layout().Family() == catalog.Diffusers
}

// pathHere returns where the model has a file of the original: in Dir, if the whole original is
// there.
func (c *Checker) pathHere(name string) string {
	if c.ofPipeline() {
		return name
	}
	return path.Join(c.DF11.Dir, name)
}
