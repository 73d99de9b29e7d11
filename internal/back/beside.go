package back

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/disk"
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

// A ComponentError says that the weights of another component of a pipeline are not the original's.
type ComponentError struct{ OtherFile }

func (e *ComponentError) Error() string {
	return e.Path + ": these weights of another component are " + e.How
}

// Values of OtherFile.How.
const (
	Changed = "changed"
	Added   = "added"
	Missing = "missing"
)

// HoldAgainstMain makes CompareFiles compare the model with the files of the original's main. Use
// it if the model itself named the original's commit: with a pull request, anyone can have commits
// in a repo, so that commit counts for the weights alone. It returns the weight files that main
// lacks or has in another version.
func (c *Checker) HoldAgainstMain(ctx context.Context) (other []string, err error) {
	if c.main, err = c.Source.Main(ctx); err != nil {
		return nil, err
	}
	for _, w := range c.Model.Listing.Weights {
		if !slices.Contains(c.main, w.File) {
			other = append(other, w.Path)
		}
	}
	return other, nil
}

// CompareFiles compares every file, except those with weights of the plan, with the original's file
// of that name. In c.Beside, it lists each file that is neither the original's nor made by a
// conversion, and each file that the model lacks although the original has it for its readers. It
// returns a ComponentError for the first differing weights of a pipeline's other component. Unless
// deep, it compares weights without a published hash by size alone.
func (c *Checker) CompareFiles(ctx context.Context, deep bool) error {
	if err := c.checkNames(); err != nil {
		return err
	}
	original := c.Model.Listing.Files
	if c.main != nil {
		original = c.main
	}
	wanted, err := c.wanted(original)
	if err != nil {
		return err
	}
	compared := map[string]bool{} // by other checks, tensor by tensor
	for _, w := range c.DF11.WeightFiles() {
		compared[w.Path] = true
	}
	for _, f := range c.DF11.Listing() {
		if c.isForPeople(f.Path) || compared[f.Path] {
			continue
		}
		how, err := c.compareFile(ctx, f, wanted[f.Path], deep)
		if err != nil {
			return err
		}
		if how != "" {
			c.differs(f.Path, how)
		}
	}
	c.addMissing(c.Plan.Carry(original))
	slices.SortFunc(c.Beside, func(a, b OtherFile) int { return cmp.Compare(a.Path, b.Path) })
	if c.component != nil {
		return c.component
	}
	return nil
}

// addMissing finds the files that the model lacks: files that a conversion would have copied, files
// that a reader of the original opens, and in a repo, the file that says what git clone writes.
func (c *Checker) addMissing(original plan.Carried) {
	lacks := func(name string) bool {
		_, there := c.DF11.File(c.pathHere(name))
		return !there && c.mustHave(name)
	}
	for _, f := range slices.Concat(original.Components, original.Copied) {
		if lacks(f.Path) {
			c.differs(c.pathHere(f.Path), Missing)
		}
	}
	for _, f := range original.NotCopied {
		isGits := f.Path == names.Attributes && c.DF11.Commit != ""
		if (f.Lost || isGits) && lacks(f.Path) {
			c.Beside = append(c.Beside, OtherFile{c.pathHere(f.Path), Missing})
		}
	}
}

// wanted returns the files that a model may have next to its weights, by their paths in the model:
// the original's, and those that a conversion makes for loaders. config.json is made from the one
// at the original's commit, so it's wanted only if original lists that one.
func (c *Checker) wanted(original []plan.File) (map[string]plan.File, error) {
	wanted := map[string]plan.File{}
	source := path.Join(path.Dir(c.Model.Listing.Weights[0].Path), names.Config)
	for _, f := range original {
		wanted[c.pathHere(f.Path)] = f
	}
	isOther := slices.ContainsFunc(c.Model.Listing.Files, func(f plan.File) bool {
		return f.Path == source && !slices.Contains(original, f)
	})
	add := func(name string, data []byte) {
		if data != nil {
			sum := sha256.Sum256(data)
			wanted[name] = plan.File{Path: name, Size: int64(len(data)),
				ETag: hex.EncodeToString(sum[:])}
		}
	}
	p := c.asNamed()
	// others put the dict into the component's own config
	if c.DF11.Dir != "" && c.Model.Listing.Config != nil {
		p.Config = path.Join(c.DF11.Dir, names.Config)
	}
	config, err := metadata.Config(p, c.Model.Listing.Config)
	if p.Config == "" || !isOther {
		add(p.ConfigPath(), config)
	}
	add(c.pathHere(p.RemainderIndex), metadata.RemainderIndex(p))
	return wanted, err
}

// asNamed returns a copy of the plan, with the remainder as the model names it: like the official
// compressor if the model has none of our names.
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

// compareFile says how a file differs from the wanted one, or returns "". It compares the hashes
// that both have. A file without a hash is read.
func (c *Checker) compareFile(ctx context.Context, f, want plan.File,
	deep bool) (how string, err error) {
	known := f.ETag != "" && len(f.ETag) == len(want.ETag)
	switch {
	case f.Path == names.Attributes && !(known && f.ETag == want.ETag):
		return c.compareAttributes(ctx, want)
	case want.Path == "":
		return Added, nil
	case f.Size != want.Size:
		return Changed, nil
	case !known && !deep && reader.IsLoaded(f.Path) && path.Ext(f.Path) != ".json":
		return "", nil
	}
	like := cmp.Or(want.ETag, f.ETag)
	got, err := model.Sum(ctx, c.DF11.OpenFile, f, like)
	if err != nil {
		return "", err
	}
	sum, err := model.Sum(ctx, c.Source.OpenFile, want, like)
	if err == nil && got != sum {
		how = Changed
	}
	return how, err
}

// compareAttributes says how the model's .gitattributes differs from the wanted one, apart from
// what a Hub adds.
func (c *Checker) compareAttributes(ctx context.Context, want plan.File) (string, error) {
	got, err := readFile(ctx, c.DF11.OpenFile)
	var original []byte
	if err == nil && slices.Contains(c.Model.Listing.Files, want) {
		original, err = readFile(ctx, c.Source.OpenFile)
	}
	var stored []string
	for _, f := range c.DF11.Listing() {
		if names.IsSHA256(f.ETag) {
			stored = append(stored, f.Path)
		}
	}
	if err != nil || reader.SameAttributes(got, original, stored) {
		return "", err
	}
	return Changed, nil
}

// readFile reads a .gitattributes, which may have 1 MiB.
func readFile(ctx context.Context,
	open func(ctx context.Context, path string) (io.ReadCloser, error)) ([]byte, error) {
	r, err := open(ctx, names.Attributes)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return disk.ReadAll(r, 1<<20)
}

// differs adds a file to c.Beside. If a pipeline may load the file for another component, differs
// sets the ComponentError instead.
func (c *Checker) differs(name, how string) {
	other := OtherFile{name, how}
	isPart := (c.hasParts() || c.ofPipeline()) && strings.Contains(name, "/") &&
		reader.IsLoaded(name)
	switch {
	case !isPart:
		c.Beside = append(c.Beside, other)
	case c.component == nil:
		c.component = &ComponentError{other}
	}
}

// checkNames refuses two names that can't both exist on a case-insensitive file system. It also
// refuses an empty weight file that the plan doesn't have, because no check of tensors would find
// it.
func (c *Checker) checkNames() error {
	var paths []string
	for _, f := range c.DF11.Listing() {
		paths = append(paths, f.Path)
	}
	if other, name := plan.Collision(paths); name != "" {
		return model.Invalidf(name, "it and %s can't both exist on a case-insensitive file system",
			other)
	}
	files := slices.Concat(c.Plan.OutputFiles, c.asNamed().RemainderFiles)
	for _, w := range c.DF11.WeightFiles() {
		planned := func(o plan.OutputFile) bool { return path.Base(o.Path) == path.Base(w.Path) }
		if len(w.Header.Tensors) == 0 && !slices.ContainsFunc(files, planned) {
			return model.Invalidf(w.Path, "it doesn't belong to the model, but a loader reads it")
		}
	}
	return nil
}

// isForPeople reports whether a file is one of ours that no loader reads. A picture that the
// original has under our name is not ours.
func (c *Checker) isForPeople(name string) bool {
	copied := func(f plan.File) bool { return f.Path == name }
	ours := []string{names.Card, names.Manifest, names.Chart}
	return slices.Contains(ours, name) && !slices.ContainsFunc(c.Plan.Copied, copied)
}

// ofPipeline reports whether the original is a pipeline of several components.
func (c *Checker) ofPipeline() bool { return c.Model.Listing.ModelIndex != nil }

// hasParts reports whether the model is a pipeline of several components.
func (c *Checker) hasParts() bool {
	_, ok := c.DF11.File(names.ModelIndex)
	return ok
}

// pathHere returns where the model has a file of the original: in Dir, if the whole original is
// there.
func (c *Checker) pathHere(name string) string {
	if c.ofPipeline() {
		return name
	}
	return path.Join(c.DF11.Dir, name)
}

// mustHave reports whether the model needs a file of the original. A single file for ComfyUI needs
// none. The DF11 component of a pipeline without the other components, as others publish it, needs
// only the list of components.
func (c *Checker) mustHave(name string) bool {
	return c.Plan.Layout != catalog.ComfyUI &&
		(c.hasParts() || !c.ofPipeline() || name == names.ModelIndex)
}
