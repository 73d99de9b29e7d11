package plan

import (
	"fmt"
	"strings"

	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// maxShardBytes is the size above which transformers opens the next remainder shard: "5GB".
const maxShardBytes = 5_000_000_000

// layouter lays the units and the remainder of a plan out in output files.
type layouter struct{ *Plan }

// place puts every tensor into exactly one output file and checks the names.
func (l layouter) place() error {
	if l.Layout.Single() {
		l.placeSingle()
	} else {
		l.placeUnits()
		l.placeRemainder(maxShardBytes)
	}
	l.OutputFiles = append(l.OutputFiles, l.RemainderFiles...)
	return l.checkNames()
}

// placeUnits gives each unit its own file, written without metadata (docs/format.md §10).
func (l layouter) placeUnits() {
	for i := range l.Units {
		u := &l.Units[i]
		u.File = strings.ReplaceAll(u.Path, ".", "_") + ".safetensors"
		l.OutputFiles = append(l.OutputFiles, OutputFile{Path: u.File, Units: []int{i}})
	}
}

// placeRemainder deals the remainder out to files of at most maxBytes, as save_pretrained does. A remainder without
// tensors still gets its file.
func (l layouter) placeRemainder(maxBytes int64) {
	shards := splitShards(l.Remainder, maxBytes)
	stem := l.Layout.stem()
	for i, shard := range shards {
		name := stem + ".safetensors"
		if len(shards) > 1 {
			name = fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i+1, len(shards))
		}
		l.RemainderFiles = append(l.RemainderFiles, OutputFile{
			Path: name, Plain: shard, Metadata: []safetensors.MetadataEntry{{Key: "format", Value: "pt"}},
		})
	}
	if len(shards) > 1 {
		l.RemainderIndex = stem + ".safetensors.index.json"
	}
}

// splitShards follows huggingface_hub's rule: a tensor above the limit gets a shard of its own at once; any other opens
// a new shard when it would lift the current one above the limit.
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
func (l layouter) placeSingle() {
	out := OutputFile{Path: l.singleName(), Plain: l.Remainder}
	for i := range l.Units {
		l.Units[i].File = out.Path
		out.Units = append(out.Units, i)
	}
	l.RemainderFiles = []OutputFile{out}
}

// singleName is the name of the one output file. A ComfyUI file keeps the source's name with -DF11 added.
func (l layouter) singleName() string {
	if l.Layout != ComfyUI {
		return l.Layout.stem() + ".safetensors"
	}
	name := l.source.Weights[0].Path
	name = strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], ".safetensors")
	return name + "-DF11.safetensors"
}

// checkNames refuses unit paths that cannot become file names, and output files that collide, also on file systems
// that ignore case (docs/format.md §10).
func (l layouter) checkNames() error {
	for _, u := range l.Units {
		if err := checkUnitPath(u.Path); err != nil {
			return err
		}
	}
	taken := map[string]string{}
	for _, f := range l.OutputFiles {
		key := strings.ToLower(f.Path)
		if other, ok := taken[key]; ok {
			return refuse(ReasonName, "choose units whose paths stay different when dots become underscores",
				"two output files would share a name: %s and %s", other, f.Path)
		}
		taken[key] = f.Path
	}
	return l.checkRemainderName()
}

// checkUnitPath refuses paths that are no plain dotted names.
func checkUnitPath(path string) error {
	const most = 200 // leaves room for the extension and a temporary name within 255 bytes
	if len(path) > most {
		return refuse(ReasonName, "", "unit path %.40q… is longer than %d bytes", path, most)
	}
	for _, c := range []byte(path) {
		if c != '_' && c != '-' && c != '.' && !isAlnum(c) {
			return refuse(ReasonName, "", "unit path %q holds %q: it cannot become a file name", path, rune(c))
		}
	}
	if strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") || strings.Contains(path, "..") {
		return refuse(ReasonName, "", "unit path %q has an empty component", path)
	}
	if deviceNames[strings.ToLower(path)] {
		return refuse(ReasonName, "", "unit path %q is a device name on Windows", path)
	}
	return nil
}

// deviceNames cannot be file names on Windows, whatever their extension.
var deviceNames = map[string]bool{
	"con": true, "prn": true, "aux": true, "nul": true, "com1": true, "com2": true, "com3": true, "com4": true,
	"com5": true, "com6": true, "com7": true, "com8": true, "com9": true, "lpt1": true, "lpt2": true, "lpt3": true,
	"lpt4": true, "lpt5": true, "lpt6": true, "lpt7": true, "lpt8": true, "lpt9": true,
}

// isAlnum says whether c is an ASCII letter or digit.
func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// checkRemainderName refuses units that are named like a remainder file of any number of shards.
func (l layouter) checkRemainderName() error {
	if l.Layout.Single() {
		return nil
	}
	stem := l.Layout.stem()
	for _, u := range l.Units {
		name := strings.ToLower(strings.TrimSuffix(u.File, ".safetensors"))
		if name == stem || isShardName(name, stem) {
			return refuse(ReasonName, "match its sub-modules instead",
				"unit %s would take the name of the remainder file %s", u.Path, u.File)
		}
	}
	return nil
}
