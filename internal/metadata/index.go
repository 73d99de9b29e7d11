package metadata

import (
	"fmt"
	"maps"
	"slices"

	"github.com/df11-convert/df11-convert/internal/pyjson"
)

// IndexFile is one file of the uncompressed rest.
type IndexFile struct {
	Path    string
	Tensors []string
}

// RemainderIndex returns the index of a rest that is spread over several files, as transformers writes it: sorted, two
// spaces of indent, ASCII only, final newline. totalSize is the number of bytes of all tensors in it.
func RemainderIndex(files []IndexFile, totalSize int64) []byte {
	holder := map[string]string{}
	for _, f := range files {
		for _, name := range f.Tensors {
			holder[name] = f.Path
		}
	}
	var weights []string
	for _, name := range slices.Sorted(maps.Keys(holder)) {
		weights = append(weights, pyjson.String(name)+": "+pyjson.String(holder[name]))
	}
	return []byte(pyjson.Object([]string{
		`"metadata": ` + pyjson.Object([]string{fmt.Sprintf(`"total_size": %d`, totalSize)}, "  ", "  "),
		`"weight_map": ` + pyjson.Object(weights, "  ", "  "),
	}, "", "  ") + "\n")
}
