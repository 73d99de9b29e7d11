package back

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// OtherFile is a file of a DF11 model or its original that is not the same in both. As text it is
// its path.
type OtherFile struct {
	Path string
	How  string // Changed, Added or Missing
}

// MarshalText gives the path.
func (o OtherFile) MarshalText() ([]byte, error) { return []byte(o.Path), nil }

// ComponentError says that the weights of another component of a pipeline are not the original's.
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

// CompareFiles compares every file but those with weights of the plan with the original's file of
// that name, of which a Hub lists the hash. A file that is neither that nor what the conversion
// makes itself is added to Beside; weights of a pipeline's other component are a ComponentError.
// Weights without a published hash are compared by size alone unless deep.
func (c *Checker) CompareFiles(ctx context.Context, deep bool) error {
	if err := c.checkNames(); err != nil {
		return err
	}
	wanted, err := c.wanted()
	if err != nil {
		return err
	}
	compared := map[string]bool{} // tensor by tensor
	for _, w := range c.DF11.WeightFiles() {
		compared[w.Path] = true
	}
	for _, f := range c.DF11.Listing() {
		if c.isForPeople(f.Path) || compared[f.Path] {
			continue
		}
		how, err := c.compareFile(ctx, f, wanted[f.Path], deep)
		if err == nil && how != "" {
			err = c.differs(f.Path, how)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range slices.Concat(c.Plan.Components, c.Plan.Copied) {
		if _, there := c.DF11.File(c.pathHere(f.Path)); !there && c.mustHave(f.Path) {
			if err := c.differs(c.pathHere(f.Path), Missing); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(c.Beside, func(a, b OtherFile) int { return cmp.Compare(a.Path, b.Path) })
	return nil
}

// wanted gives the files that a model may have beside its weights, by the path that it has them at:
// the original's, and those that a conversion makes of it for loaders.
func (c *Checker) wanted() (map[string]plan.File, error) {
	wanted := map[string]plan.File{}
	for _, f := range c.Model.Listing.Files {
		wanted[c.pathHere(f.Path)] = f
	}
	add := func(name string, data []byte) {
		if data != nil {
			sum := sha256.Sum256(data)
			wanted[name] = plan.File{Path: name, Size: int64(len(data)),
				ETag: hex.EncodeToString(sum[:])}
		}
	}
	p := *c.Plan
	// others put the dict into the component's own config
	if c.DF11.Dir != "" && c.Model.Listing.Config != nil {
		p.Config = path.Join(c.DF11.Dir, names.Config)
	}
	config, err := metadata.Config(&p, c.Model.Listing.Config)
	add(p.ConfigPath(), config)
	add(c.pathHere(p.RemainderIndex), metadata.RemainderIndex(&p))
	return wanted, err
}

// compareFile says how a file is not the wanted one, "" if it is, by the hash that both have, else
// by reading what has none of its own.
func (c *Checker) compareFile(ctx context.Context, f, want plan.File,
	deep bool) (how string, err error) {
	known := f.ETag != "" && len(f.ETag) == len(want.ETag)
	switch {
	case want.Path == "":
		return Added, nil
	case f.Size != want.Size:
		return Changed, nil
	case !known && !deep && plan.IsLoaded(f.Path) && path.Ext(f.Path) != ".json":
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

// differs adds a file to Beside. What a pipeline may load for another component is no file beside
// the weights.
func (c *Checker) differs(name, how string) error {
	other := OtherFile{name, how}
	if (c.hasParts() || c.ofPipeline()) && strings.Contains(name, "/") && plan.IsLoaded(name) {
		return &ComponentError{other}
	}
	c.Beside = append(c.Beside, other)
	return nil
}

// checkNames refuses names that a case-insensitive system takes for one, and a weight file that is
// no part of the plan and has no tensor that would show it.
func (c *Checker) checkNames() error {
	names := map[string]string{}
	for _, f := range c.DF11.Listing() {
		low := strings.ToLower(f.Path)
		if other, twice := names[low]; twice {
			return model.Invalidf(f.Path,
				"where case does not count, this is %s: another system loads another file", other)
		}
		names[low] = f.Path
	}
	for _, w := range c.DF11.WeightFiles() {
		planned := func(o plan.OutputFile) bool { return path.Base(o.Path) == path.Base(w.Path) }
		if len(w.Header.Tensors) == 0 && !slices.ContainsFunc(c.Plan.OutputFiles, planned) {
			return model.Invalidf(w.Path, "no part of the model, but a loader reads it")
		}
	}
	return nil
}

// isForPeople reports whether a file is one of ours that no loader reads, or one for Git; the
// original may have a picture of its own.
func (c *Checker) isForPeople(name string) bool {
	copied := func(f plan.File) bool { return f.Path == name }
	ours := []string{names.Card, names.Manifest, names.Chart, names.Attributes}
	return slices.Contains(ours, name) && !slices.ContainsFunc(c.Plan.Copied, copied)
}

// ofPipeline reports whether the original is a pipeline of several components, hasParts whether the
// model is one.
func (c *Checker) ofPipeline() bool { return c.Model.Listing.ModelIndex != nil }

func (c *Checker) hasParts() bool {
	_, ok := c.DF11.File(names.ModelIndex)
	return ok
}

// pathHere is where the model has a file of the original: in Dir, if the whole original lies there.
func (c *Checker) pathHere(name string) string {
	if c.ofPipeline() {
		return name
	}
	return path.Join(c.DF11.Dir, name)
}

// mustHave reports whether the model lacks something without a file of the original. The DF11 part
// of a pipeline without the other parts, as others publish it, lacks only the list of them; a
// single file for ComfyUI lacks nothing.
func (c *Checker) mustHave(name string) bool {
	return c.Plan.Layout != catalog.ComfyUI &&
		(c.hasParts() || !c.ofPipeline() || name == names.ModelIndex)
}
