package back

import (
	"bytes"
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/smallfile"
)

// OtherFile is a file of a DF11 model or its original that is not the same in both. As text it is its path.
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

const modelIndex = "model_index.json"

// forPeople are files of ours that no loader reads; the last one is for Git.
var forPeople = []string{model.CardName, metadata.ManifestName, metadata.ChartName, ".gitattributes"}

// CompareFiles compares every file but those with weights of the plan with the original's file of that name, of which a Hub lists
// the hash. A file that is neither that nor what the conversion makes itself is added to Beside; weights of a pipeline's other
// component are a ComponentError. Weights without a published hash are compared by size alone unless deep.
func (c *Checker) CompareFiles(ctx context.Context, deep bool) error {
	files := c.DF11.Listing()
	slices.SortFunc(files, func(a, b plan.File) int { return cmp.Compare(a.Path, b.Path) })
	if err := c.checkNames(files); err != nil {
		return err
	}
	made, err := c.made()
	if err != nil {
		return err
	}
	original := map[string]plan.File{} // by the path that the model gives it
	for _, f := range c.Original.Listing.Files {
		original[c.pathHere(f.Path)] = f
	}
	there := map[string]bool{}
	for _, f := range files {
		there[f.Path] = true
		o, how := original[f.Path], Added
		same := c.isForPeople(f.Path) || c.hasOutput(f.Path)
		switch data, ours := made[f.Path]; {
		case same:
		case ours:
			same, err = c.is(ctx, f, data)
			how = Changed
		case o.Path != "":
			same, err = c.same(ctx, f, o, deep)
			how = Changed
		}
		if err == nil && !same {
			err = c.differs(f.Path, how)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range slices.Concat(c.Plan.Components, c.Plan.Copied) {
		if name := c.pathHere(f.Path); !there[name] && c.mustHave(f.Path, there[modelIndex]) {
			if err := c.differs(name, Missing); err != nil {
				return err
			}
		}
	}
	return nil
}

// Values of OtherFile.How.
const (
	Changed = "changed"
	Added   = "added"
	Missing = "missing"
)

// isPipeline reports whether the original is a pipeline of several components.
func (c *Checker) isPipeline() bool { return c.Original.Listing.ModelIndex != nil }

// differs adds a file to Beside. What a pipeline may load for another component is no file beside the weights.
func (c *Checker) differs(name, how string) error {
	other := OtherFile{name, how}
	_, isPipeline := c.DF11.File(modelIndex)
	if (isPipeline || c.isPipeline()) && strings.Contains(name, "/") && plan.IsLoaded(name) {
		return &ComponentError{other}
	}
	c.Beside = append(c.Beside, other)
	return nil
}

// checkNames refuses what a case-insensitive system would take for one file, and a weight file that is no part of the conversion and
// holds no tensor that would show it.
func (c *Checker) checkNames(files []plan.File) error {
	names := map[string]string{}
	for _, f := range files {
		low := strings.ToLower(f.Path)
		if other, twice := names[low]; twice {
			return model.Invalidf(f.Path, "where case does not count, this is %s: another system loads another file", other)
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

// hasOutput reports whether a file is one with weights of the plan, which are compared tensor by tensor.
func (c *Checker) hasOutput(name string) bool {
	return slices.ContainsFunc(c.DF11.WeightFiles(), func(w plan.WeightFile) bool { return w.Path == name })
}

// isForPeople reports whether no loader reads a file, unless the original happens to have one of that name as well.
func (c *Checker) isForPeople(name string) bool {
	copied := func(f plan.File) bool { return f.Path == name }
	return slices.Contains(forPeople, name) && !slices.ContainsFunc(c.Plan.Copied, copied)
}

// pathHere is where the model has a file of the original: in Dir, if the whole original lies there.
func (c *Checker) pathHere(name string) string {
	if c.isPipeline() {
		return name
	}
	return path.Join(c.DF11.Dir, name)
}

// mustHave reports whether the model lacks something without a file of the original. The DF11 part of a pipeline without the other
// parts, as others publish it, lacks only the list of them; a single file for ComfyUI lacks nothing.
func (c *Checker) mustHave(name string, isPipeline bool) bool {
	return c.Plan.Layout != plan.ComfyUI && (isPipeline || !c.isPipeline() || name == modelIndex)
}

// made gives the files beside the weights that a conversion makes itself, for loaders.
func (c *Checker) made() (map[string][]byte, error) {
	p := *c.Plan
	if c.DF11.Dir != "" { // others put the dict into the component's own config
		p.Config = plan.ConfigPlan{Mode: plan.ConfigInsert, Source: path.Join(c.DF11.Dir, "config.json")}
	}
	made := map[string][]byte{}
	config, err := metadata.Config(&p, c.Original.Listing.Config)
	if config != nil {
		made[p.ConfigPath()] = config
	}
	if index := metadata.RemainderIndex(&p); index != nil {
		made[c.pathHere(p.RemainderIndex)] = index
	}
	return made, err
}

// is reports whether a file has this content.
func (c *Checker) is(ctx context.Context, f plan.File, data []byte) (bool, error) {
	if f.Size != int64(len(data)) {
		return false, nil
	}
	r, err := c.DF11.OpenFile(ctx, f.Path)
	if err != nil {
		return false, err
	}
	defer r.Close()
	b, err := smallfile.All(r, f.Size)
	return bytes.Equal(b, data), err
}

// same reports whether a file is the original's, by the hash that both have, else by reading what has none of its own.
func (c *Checker) same(ctx context.Context, f, o plan.File, deep bool) (bool, error) {
	known := f.ETag != "" && len(f.ETag) == len(o.ETag)
	if f.Size != o.Size || !known && !deep && plan.IsLoaded(f.Path) {
		return f.Size == o.Size, nil
	}
	like := cmp.Or(o.ETag, f.ETag)
	sum, err := model.Sum(ctx, c.DF11, f, like)
	if err != nil {
		return false, err
	}
	want, err := model.Sum(ctx, c.Source, o, like)
	return sum == want, err
}
