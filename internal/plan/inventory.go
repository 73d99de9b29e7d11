package plan

import (
	"context"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/python"
)

// inventory is every tensor of the source, by file, then by offset: the nearest to the order of the
// state dict.
type inventory struct {
	files    []WeightFile
	tensors  []Tensor
	byName   map[string]int   // output name → index in tensors
	modules  []string         // every proper prefix of a name, in natural order
	numbered map[string][]int // numbers that are direct children of a module
}

// takeInventory lists the tensors of the weight files.
func takeInventory(files []WeightFile) (*inventory, error) {
	inv := &inventory{files: files}
	for i, f := range files {
		for _, t := range f.Header.ByOffset() {
			inv.tensors = append(inv.tensors, Tensor{
				Name: t.Name, Source: t.Name, DType: t.DType, Shape: t.Shape,
				File: i, Offset: f.Header.DataStart() + t.Begin, Length: t.NBytes(),
			})
		}
	}
	return inv, inv.index()
}

// index indexes the tensors by name, and has to be called when tensors or names have changed. It
// refuses a name that is too long, and a tensor that two files hold, or that has got the name of
// another.
func (inv *inventory) index() error {
	inv.byName, inv.modules, inv.numbered = make(map[string]int, len(inv.tensors)), nil, nil
	var paths modulePaths
	for i, t := range inv.tensors {
		if err := paths.add(t.Name); err != nil {
			return err
		}
		switch other, ok := inv.get(t.Name); {
		case ok && other.Source == t.Source:
			return refuse("remove the stale file or its entries from the index",
				"%s and %s both hold %s", inv.files[other.File].Path, inv.files[t.File].Path,
				t.Name)
		case ok:
			return refuse("give --pattern-dict for the source's own names",
				"%s and %s both become %s", other.Source, t.Source, t.Name)
		}
		inv.byName[t.Name] = i
	}
	return nil
}

func (inv *inventory) get(name string) (Tensor, bool) {
	i, ok := inv.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return inv.tensors[i], true
}

func (inv *inventory) holds(name string) bool {
	_, ok := inv.byName[name]
	return ok
}

// weight returns the weight of an attribute of a module, or of the module itself for "".
func (inv *inventory) weight(module, attr string) (Tensor, bool) {
	return inv.get(weightName(module, attr))
}

// weightName returns the name of the weight of an attribute of a module, or of the module itself
// for "".
func weightName(module, attr string) string {
	if attr != "" {
		module += "." + attr
	}
	return module + ".weight"
}

func (inv *inventory) holdsPrefix(prefix string) bool {
	return slices.ContainsFunc(inv.tensors,
		func(t Tensor) bool { return strings.HasPrefix(t.Name, prefix) })
}

// allModules returns every module that the names show, in natural order: each proper prefix that
// ends before a dot.
func (inv *inventory) allModules() []string {
	if inv.modules == nil {
		names := make([]string, len(inv.tensors))
		for i, t := range inv.tensors {
			names[i] = t.Name
		}
		inv.modules = modulesOf(names)
	}
	return inv.modules
}

func (inv *inventory) matching(ctx context.Context, regex string) ([]string, error) {
	re, err := python.Compile(regex)
	if err != nil {
		return nil, err
	}
	return matching(ctx, re, inv.allModules())
}

// children returns the numbers that are direct children of a module, in order.
func (inv *inventory) children(module string) []int {
	if inv.numbered == nil {
		inv.numbered = map[string][]int{}
		for _, m := range inv.allModules() {
			if n, ok := number(leaf(m)); ok {
				inv.numbered[parent(m)] = append(inv.numbered[parent(m)], n)
			}
		}
	}
	return inv.numbered[module]
}

// experts returns the numbers that stand for {e} in an attribute of a module, in order.
func (inv *inventory) experts(module, attr string) []int {
	before, _, _ := strings.Cut(attr, ".{e}")
	return inv.children(module + "." + before)
}

// checkIndex refuses an index that names a tensor which its file does not hold. It counts the
// tensors that the index lacks.
func (inv *inventory) checkIndex(s *Survey, src Source) (unlisted int, err error) {
	if s.Index == "" {
		return 0, nil
	}
	m, err := s.weightMap(src.Index)
	if err != nil {
		return 0, err
	}
	var missing []string
	for name, file := range m {
		t, ok := inv.get(name)
		if !ok || src.Weights[t.File].Path != file {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.SortFunc(missing, human.CompareNames)
		return 0, refuse("the index is stale or a shard is damaged; fetch the source again",
			"%s lists tensors that its files do not hold: %s", s.Index, human.List(missing))
	}
	for _, t := range inv.tensors {
		if _, ok := m[t.Name]; !ok {
			unlisted++
		}
	}
	return unlisted, nil
}
