package back

import (
	"maps"
	"path"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/python"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// An index is what loaders need to find weights in several files. It says the same as the
// original's index, but isn't a copy of it. The zero index is that of a single file, which needs
// none.
type index struct {
	name string // in the output folder, with slashes
	data []byte
}

func indexOf(files []model.File) (x index) {
	stem, shard := reader.ShardOf(files[0].Path)
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

// isIn reports whether the folder has an index that says the same.
func (x index) isIn(f *disk.Folder) bool {
	b, err := f.Read(x.name, max(model.MaxIndexBytes, int64(len(x.data))))
	return err == nil && maps.Equal(weightMap(b), weightMap(x.data))
}

// weightMap returns the file of each tensor, or nil if the JSON is not an index.
func weightMap(b []byte) map[string]string {
	var x struct {
		Map map[string]string `json:"weight_map"`
	}
	_ = python.Unmarshal(b, &x) // broken JSON lists nothing
	return x.Map
}
