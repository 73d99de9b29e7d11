package metadata

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/python"
)

// Index returns the index of weights in several files, as transformers writes it: sorted, two
// spaces of indent, ASCII only, final newline. files maps each tensor to its file, and totalSize is
// the bytes of all tensors.
func Index(files map[string]string, totalSize int64) []byte {
	var weights []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		weights = append(weights, python.String(name)+": "+python.String(files[name]))
	}
	return []byte(python.Object([]string{
		`"metadata": ` + python.Object([]string{fmt.Sprintf(`"total_size": %d`, totalSize)}, "  ",
			"  "),
		`"weight_map": ` + python.Object(weights, "  ", "  "),
	}, "", "  ") + "\n")
}

// RemainderIndex returns the index of a remainder in several files, or nil if it's one file.
func RemainderIndex(p *plan.Plan) []byte {
	if p.RemainderIndex == "" {
		return nil
	}
	files := map[string]string{}
	var total int64
	for _, f := range p.RemainderFiles {
		for _, t := range f.Plain {
			files[t.Name] = path.Base(f.Path)
			total += t.Length
		}
	}
	return Index(files, total)
}
