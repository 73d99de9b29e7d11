package plan

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// An inventory is every tensor of the source, by file and then by offset. That is the closest to
// the order of the state dict. An inventory never changes.
type inventory struct {
	files    []WeightFile
	exactF32 bool // F32 weights may be exact BF16
	tensors  []Tensor
	dropped  []Tensor         // tensors of the files that aren't in it: those of other models
	byName   map[string]int   // output name → index in tensors
	modules  []string         // every proper prefix of a name, in natural order
	parents  map[string]bool  // modules with sub-modules
	numbered map[string][]int // numbers that are direct children of a module
}

// takeInventory lists the tensors of the weight files and checks them against the index. It refuses
// packed weights and adapters. From a ComfyUI checkpoint it drops other models.
func takeInventory(ctx context.Context, r *reading, notes *Notes) (*inventory, error) {
	inv, err := listTensors(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.weightMap != nil {
		if err := checkIndex(r, inv, notes); err != nil {
			return nil, err
		}
	}
	if err := refuseByNames(inv.tensors); err != nil {
		return nil, err
	}
	if r.survey.Layout == catalog.ComfyUI {
		if inv, err = stripComfyPrefix(inv, notes); err != nil {
			return nil, err
		}
	}
	return rebase(ctx, r, inv), nil
}

// listTensors lists the tensors of the weight files under their own names.
func listTensors(ctx context.Context, r *reading) (*inventory, error) {
	inv := &inventory{files: r.source.Weights, exactF32: r.opt.ExactF32}
	var tensors []Tensor
	for i, f := range inv.files {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for _, t := range f.Header.ByOffset() {
			tensors = append(tensors, Tensor{
				Name: t.Name, Source: t.Name, DType: t.DType, Shape: t.Shape,
				File: i, Offset: f.Header.DataStart() + t.Begin, Length: t.NBytes(),
			})
		}
	}
	return inv.with(tensors)
}

// with returns an inventory of other tensors of the same files. It refuses a name that is too long,
// a tensor that two files hold, and a tensor that was given another tensor's name.
func (inv *inventory) with(tensors []Tensor) (*inventory, error) {
	out := &inventory{files: inv.files, exactF32: inv.exactF32, tensors: tensors, dropped: inv.dropped,
		byName: make(map[string]int, len(tensors)), parents: map[string]bool{}, numbered: map[string][]int{}}
	for i, t := range tensors {
		if other, ok := out.get(t.Name); ok {
			return nil, refuse(hint.StaleTensor, "%s of %s and %s of %s would both be %s",
				other.Source, inv.files[other.File].Path, t.Source, inv.files[t.File].Path, t.Name)
		}
		out.byName[t.Name] = i
	}
	var err error
	out.modules, err = catalog.Modules(namesOf(tensors))
	for _, m := range out.modules {
		in := catalog.Parent(m)
		out.parents[in] = true
		if n, ok := catalog.Number(catalog.Leaf(m)); ok {
			out.numbered[in] = append(out.numbered[in], n)
		}
	}
	return out, err
}

func namesOf(tensors []Tensor) []string {
	out := make([]string, len(tensors))
	for i, t := range tensors {
		out[i] = t.Name
	}
	return out
}

func (inv *inventory) get(name string) (Tensor, bool) {
	i, ok := inv.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return inv.tensors[i], true
}

// shape returns the dimensions of a tensor, if it exists.
func (inv *inventory) shape(name string) ([]int64, bool) {
	t, ok := inv.get(name)
	return t.Shape, ok
}

// weight returns the weight of an attribute of a module. For "" it returns that of the module
// itself.
func (inv *inventory) weight(module, attr string) (Tensor, bool) {
	return inv.get(catalog.WeightName(module, attr))
}

// nWeights returns how many weights a unit has.
func (inv *inventory) nWeights(module string, attrs []string) (n int64) {
	if len(attrs) == 0 {
		attrs = []string{""}
	}
	for _, a := range attrs {
		if t, ok := inv.attribute(module, a); ok {
			n += t.NElems()
		}
	}
	return n
}

// isConvertible reports whether a tensor has a type that a unit can hold.
func (inv *inventory) isConvertible(t Tensor) bool {
	return t.DType == safetensors.BF16 || t.DType == safetensors.F32 && inv.exactF32
}

// experts returns the numbers that stand for {e} in an attribute of a module, in order.
func (inv *inventory) experts(module, attr string) []int {
	before, _, _ := strings.Cut(attr, ".{e}")
	return inv.numbered[module+"."+before]
}

// checkIndex refuses an index that names a tensor of another file. It warns of names that no file
// holds, because libraries read the files that an index names, not its list of tensors.
func checkIndex(r *reading, inv *inventory, notes *Notes) error {
	var nowhere []string
	for _, name := range slices.Sorted(maps.Keys(r.weightMap)) {
		if t, ok := inv.get(name); !ok {
			nowhere = append(nowhere, name)
		} else if r.source.Weights[t.File].Path != r.weightMap[name] {
			return refuse(hint.IndexStale,
				"%s lists %s, which its file doesn't hold", r.index, name)
		}
	}
	if len(nowhere) > 0 {
		notes.warn("%s lists %s that no file holds: %s", r.index, human.Count(len(nowhere), "tensor"),
			human.List(nowhere))
	}
	return nil
}

// comfyPrefixes come before the diffusion model's names in full checkpoints. ComfyUI's loaders want
// names without them.
var comfyPrefixes = []string{"model.diffusion_model.", "diffusion_model."}

// stripComfyPrefix removes the prefix from the names of a single file. From a full checkpoint it
// drops the other models (text encoders, VAE), which the ComfyUI node doesn't load.
func stripComfyPrefix(inv *inventory, notes *Notes) (*inventory, error) {
	for _, prefix := range comfyPrefixes {
		var kept, dropped []Tensor
		for _, t := range inv.tensors {
			if name, ok := strings.CutPrefix(t.Name, prefix); ok {
				t.Name = name
				kept = append(kept, t)
			} else {
				dropped = append(dropped, t)
			}
		}
		if len(kept) == 0 {
			continue
		}
		if len(dropped) > 0 {
			number, names := human.Count(len(dropped), "tensor"), human.List(human.ByModule(sourceNames(dropped)))
			notes.lack("%s left out, because they belong to other models, not the diffusion model: %s; "+
				"keep the source for them",
				number, names)
			notes.differ("%s left out, because they belong to other models, not the diffusion model: %s; "+
				"the manifest has all names",
				number, names)
		}
		out, err := inv.with(kept)
		if err != nil {
			return nil, err
		}
		out.dropped = dropped
		return out, nil
	}
	return inv, nil
}
