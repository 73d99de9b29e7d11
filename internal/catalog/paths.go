package catalog

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// Limits of names. docs/format.md §16 says why each is generous.
const (
	maxDepth = 32 // parts of a tensor's name between its dots
	// bytes of the paths of all modules, counted once for each tensor in a module
	maxModuleBytes = 64 << 20
)

// Parent returns the path up to the last dot, or "".
func Parent(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

// Leaf returns what follows the last dot.
func Leaf(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// WeightName returns the name of the weight of a module's attribute. For "" it returns that of the
// module itself.
func WeightName(module, attr string) string {
	if attr != "" {
		module += "." + attr
	}
	return module + ".weight"
}

// Modules lists the modules that names of tensors show, in natural order: each proper prefix that
// ends before a dot. It refuses names that no header holds, names with very many components, since
// each would be a module, and too many paths.
func Modules(names []string) (modules []string, err error) {
	seen, nBytes := map[string]bool{}, 0
	for _, name := range names {
		if strings.Count(name, ".") >= maxDepth || len(name) > safetensors.MaxNameBytes {
			return nil, Refuse(hint.Rename,
				"the name of tensor %.100q has more than %d parts, or more than %d bytes", name,
				maxDepth, safetensors.MaxNameBytes)
		}
		for p := Parent(name); p != ""; p = Parent(p) {
			nBytes += len(p)
			if !seen[p] {
				seen[p] = true
				modules = append(modules, p)
			}
		}
		if nBytes > maxModuleBytes {
			return nil, Refuse(hint.ShorterNames,
				"the paths of all modules have more than %d bytes", maxModuleBytes)
		}
	}
	slices.SortFunc(modules, human.CompareNames)
	return modules, nil
}

// Number reads a path component that is the number of a block or an expert. Too large a number
// becomes 2^62-1.
func Number(component string) (n int, ok bool) {
	if component == "" || component[0] < '0' || component[0] > '9' {
		return 0, false
	}
	u, err := strconv.ParseUint(component, 10, 62)
	return int(u), err == nil || errors.Is(err, strconv.ErrRange)
}

// Numberless replaces each component of a path that is a number by #.
func Numberless(path string) string {
	parts := strings.Split(path, ".")
	for i, p := range parts {
		if _, ok := Number(p); ok {
			parts[i] = "#"
		}
	}
	return strings.Join(parts, ".")
}

// A Split is one way to read a module's path: as an attribute of a numbered block of a stack.
type Split struct {
	Stack string // path before the number
	Index int    // the number of the block
	Attr  string // path inside the block
}

// Block returns the path of the block.
func (s Split) Block() string { return s.Stack + "." + strconv.Itoa(s.Index) }

// Splits returns every way to read a path as stack, number and attribute, outermost first.
func Splits(module string) []Split {
	parts := strings.Split(module, ".")
	var out []Split
	for i := 1; i < len(parts)-1; i++ {
		if n, ok := Number(parts[i]); ok {
			out = append(out,
				Split{strings.Join(parts[:i], "."), n, strings.Join(parts[i+1:], ".")})
		}
	}
	return out
}

// LastSplit reads a block's path by its last number. Without a number, the stack is "" and the
// number is -1.
func LastSplit(block string) Split {
	splits := Splits(block + ".x")
	if len(splits) == 0 {
		return Split{Index: -1}
	}
	return splits[len(splits)-1]
}
