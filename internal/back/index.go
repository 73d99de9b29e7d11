package back

import (
	"crypto/sha256"
	"encoding/hex"
	"path"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/reader"
)

// An index is what loaders need to find weights in several files. It says the same as the
// original's index, but isn't a copy of it. The zero index is that of a single file, which needs
// none.
type index struct {
	model.File
	data []byte
}

func indexOf(files []model.File) (x index) {
	shard, isShard := reader.ShardOf(files[0].Path)
	if len(files) < 2 || !isShard {
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
	x.data = metadata.Index(holder, total)
	sum := sha256.Sum256(x.data)
	x.Path, x.Size = shard.Stem+".safetensors.index.json", int64(len(x.data))
	x.SHA256 = hex.EncodeToString(sum[:])
	return x
}
