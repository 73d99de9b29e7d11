package plan

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// maxShardBytes is the size above which transformers opens the next remainder shard: "5GB". Files
// that units share have the same limit.
const maxShardBytes = 5_000_000_000

// maxUnitFiles is the largest number of files with one unit each. A layer of many experts may need
// a unit for each of them, and a folder on the Hub holds 10,000 files (docs/format.md §10).
const maxUnitFiles = 1000

// placeTensors puts every tensor into exactly one output file.
func placeTensors(src *Source, layout catalog.Layout, v *division, notes *Notes) *placement {
	if layout.Single() {
		whole := []OutputFile{placeSingle(src, layout, v)}
		return &placement{outputs: whole, remainder: whole}
	}
	f := &placement{outputs: placeUnits(v.units, notes), remainder: placeRemainder(v.remainder)}
	f.outputs = append(f.outputs, f.remainder...)
	if len(f.remainder) > 1 {
		f.remainderIndex = indexName(names.Remainder)
	}
	return f
}

// placeUnits gives each unit its own file, written without metadata (docs/format.md §10). If that
// makes too many files, the units of a layer share some. The model alone decides it.
func placeUnits(units []Unit, notes *Notes) (files []OutputFile) {
	if len(units) > maxUnitFiles {
		notes.differ("the modules of a layer share files; one file each would be %s files",
			human.Grouped(int64(len(units))))
		return placeLayers(units)
	}
	for i, u := range units {
		files = append(files, OutputFile{Path: fileName(u.Path), Units: []int{i}})
	}
	return files
}

// fileName returns the name of the only file of a module.
func fileName(module string) string { return shardName(strings.ReplaceAll(module, ".", "_"), 0, 1) }

// layerOf returns the layer that a module is in: the path up to its first number. A module without
// a number is its own layer.
func layerOf(module string) string {
	parts := strings.Split(module, ".")
	for i, part := range parts {
		if _, ok := catalog.Number(part); ok {
			return strings.Join(parts[:i+1], ".")
		}
	}
	return module
}

// placeLayers puts the units of each layer into as few files as possible, in the order of the plan.
// A file holds at most maxShardBytes of BF16 weights, or one unit.
func placeLayers(units []Unit) (files []OutputFile) {
	var layers []string
	shards := map[string][][]int{} // the units of each file of a layer
	nBytes := map[string]int64{}   // in the last file of a layer
	for i, u := range units {
		layer, size := layerOf(u.Path), u.NBytes()+sum(u.Siblings, Tensor.SpoolBytes)
		of := shards[layer]
		if len(of) == 0 {
			layers = append(layers, layer)
		}
		if len(of) == 0 || nBytes[layer]+size > maxShardBytes {
			of, nBytes[layer] = append(of, nil), 0
		}
		of[len(of)-1] = append(of[len(of)-1], i)
		shards[layer], nBytes[layer] = of, nBytes[layer]+size
	}
	for _, layer := range layers {
		stem, n := strings.ReplaceAll(layer, ".", "_"), len(shards[layer])
		for i, units := range shards[layer] {
			files = append(files, OutputFile{Path: shardName(stem, i, n), Units: units})
		}
	}
	return files
}

// placeRemainder divides the remainder into files, as save_pretrained does. Even an empty remainder
// gets a file.
func placeRemainder(remainder []Tensor) (files []OutputFile) {
	shards := splitShards(remainder, maxShardBytes)
	for i, shard := range shards {
		files = append(files, OutputFile{
			Path: shardName(names.Remainder, i, len(shards)), Plain: shard,
			Metadata: []safetensors.MetadataEntry{{Key: "format", Value: "pt"}},
		})
	}
	return files
}

// shardName returns the name of the i-th of n shards, or of the only file.
func shardName(stem string, i, n int) string {
	if n == 1 {
		return stem + ".safetensors"
	}
	return fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i+1, n)
}

func indexName(stem string) string { return stem + ".safetensors.index.json" }

// OfficialRemainder returns the remainder with the official compressor's names for its files and
// index (docs/format.md §10).
func (p *Plan) OfficialRemainder() Rest {
	r, stem := p.Rest, p.Layout.Stem()
	r.RemainderFiles = slices.Clone(r.RemainderFiles)
	for i := range r.RemainderFiles {
		r.RemainderFiles[i].Path = shardName(stem, i, len(r.RemainderFiles))
	}
	if r.RemainderIndex != "" {
		r.RemainderIndex = indexName(stem)
	}
	return r
}

// splitShards follows huggingface_hub's rule. A tensor above the limit gets a shard of its own at
// once. Any other tensor opens a new shard if it would lift the current one above the limit.
func splitShards(tensors []Tensor, maxBytes int64) [][]Tensor {
	var shards [][]Tensor
	var current []Tensor
	var nBytes int64
	for _, t := range tensors {
		if t.Length > maxBytes {
			shards = append(shards, []Tensor{t})
			continue
		}
		if nBytes+t.Length > maxBytes {
			shards = append(shards, current)
			current, nBytes = nil, 0
		}
		current = append(current, t)
		nBytes += t.Length
	}
	if len(current) > 0 || len(shards) == 0 {
		shards = append(shards, current)
	}
	return shards
}

// placeSingle puts all units and the remainder into one file without metadata (docs/format.md §10).
// A ComfyUI file keeps the source's name, with -DF11 added.
func placeSingle(src *Source, layout catalog.Layout, v *division) OutputFile {
	stem := names.Whole
	if layout == catalog.ComfyUI {
		stem = strings.TrimSuffix(path.Base(src.Weights[0].Path), ".safetensors") + names.ResultEnd
	}
	out := OutputFile{Path: stem + ".safetensors", Plain: v.remainder}
	for i := range v.units {
		out.Units = append(out.Units, i)
	}
	return out
}

// checkOutputNames refuses unit paths that can't become file names. It also refuses units named
// like a remainder file, ours or the official one, whatever the number of shards (docs/format.md
// §10). Libraries would take a unit with the official name for the whole model.
func checkOutputNames(f *placement, layout catalog.Layout, units []Unit) error {
	for _, out := range f.outputs {
		if !names.IsSafe(out.Path) {
			return refuse(hint.Rename,
				"a repo or a file system may refuse the name of the output file %q", out.Path)
		}
	}
	for _, u := range units {
		if len(u.Path) > maxUnitPath || !unitPath.MatchString(u.Path) {
			return refuse(hint.ModulePath, "module path %.200q can't become a file name: it may "+
				"have %d letters, digits, - and _ between single dots", u.Path, maxUnitPath)
		}
	}
	if layout.Single() {
		return nil
	}
	for _, out := range f.outputs {
		stem := strings.ToLower(strings.TrimSuffix(out.Path, ".safetensors"))
		if len(out.Units) > 0 && (reader.HasStem(stem, layout.Stem()) || reader.HasStem(stem, names.Remainder)) {
			return refuse(hint.RemainderName, "module %s would take the name of the remainder file %s",
				units[out.Units[0]].Path, out.Path)
		}
	}
	return nil
}

// unitPath matches plain dotted names.
var unitPath = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// maxUnitPath leaves room for the extension and a temporary name within 255 bytes.
const maxUnitPath = 200
