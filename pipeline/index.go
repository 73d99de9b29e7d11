package pipeline

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/smallfile"
	"github.com/df11-convert/df11-convert/internal/target"
)

// index is the index that loaders need for weights in several files. It says the same as the original's, but is not a copy of
// it. The zero index is that of a single file, which has none.
type index struct {
	name string // in the output folder, with slashes
	data []byte
}

func indexOf(files []plan.WeightFile) (x index) {
	stem, shard := plan.ShardOf(files[0].Path)
	if len(files) < 2 || !shard {
		return x
	}
	holder := map[string]string{}
	var total int64
	for _, f := range files {
		for _, t := range f.Header.Tensors {
			holder[t.Name] = path.Base(f.Path)
			total += t.NBytes()
		}
	}
	return index{stem + ".safetensors.index.json", metadata.Index(holder, total)}
}

// there reports whether the folder has an index, and whether that says the same.
func (x index) there(dir string) (there, same bool, err error) {
	if x.name == "" {
		return true, true, nil
	}
	b, err := smallfile.Read(filepath.Join(dir, filepath.FromSlash(x.name)), max(model.MaxIndexBytes, int64(len(x.data))))
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	return true, maps.Equal(weightMap(b), weightMap(x.data)), err
}

// weightMap is the file of each tensor; nil if the JSON is none of an index.
func weightMap(b []byte) map[string]string {
	var x struct {
		Map map[string]string `json:"weight_map"`
	}
	_ = json.Unmarshal(b, &x) // what is broken says nothing
	return x.Map
}

// check refuses a folder with another index, which write would replace.
func (x index) check(dir string, force bool) error {
	if there, same, err := x.there(dir); err != nil || !there || same || force {
		return err
	}
	return &target.OccupiedError{Folder: dir, Replaced: []string{x.name}}
}

// write writes the index unless one that says the same is there, such as the original's own.
func (x index) write(dir string) error {
	if _, same, err := x.there(dir); err != nil || same {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, filepath.FromSlash(x.name)), x.data)
}
