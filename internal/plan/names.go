package plan

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
)

// parent returns the path up to the last dot, or "".
func parent(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

// leaf returns what follows the last dot.
func leaf(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// Modules lists the modules that names of tensors show, in natural order: each proper prefix that
// ends before a dot. It refuses names with very long or very many paths.
func Modules(names []string) ([]string, error) {
	var paths modulePaths
	for _, name := range names {
		if err := paths.add(name); err != nil {
			return nil, err
		}
	}
	return modulesOf(names), nil
}

// modulesOf lists the modules of names that are known to be within the limits.
func modulesOf(names []string) (modules []string) {
	seen := map[string]bool{}
	for _, name := range names {
		for p := parent(name); p != "" && !seen[p]; p = parent(p) {
			seen[p] = true
			modules = append(modules, p)
		}
	}
	slices.SortFunc(modules, human.CompareNames)
	return modules
}

// number reads a component of a path that is the number of a block or an expert. Too large a number
// becomes 2^62-1.
func number(component string) (n int, ok bool) {
	u, err := strconv.ParseUint(component, 10, 62)
	return int(u), err == nil || errors.Is(err, strconv.ErrRange)
}

// shardNumber matches the end of the name of a shard: -00001-of-00002.
var shardNumber = regexp.MustCompile(`-\d+-of-\d+$`)

// hasStem says whether the name of a file, without its extension, is stem, or stem with the number
// of a shard.
func hasStem(name, stem string) bool { return shardNumber.ReplaceAllString(name, "") == stem }

// count puts a number before a noun, with an s unless the number is 1.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sum adds up a number of each element.
func sum[T any](list []T, of func(T) int64) (n int64) {
	for _, x := range list {
		n += of(x)
	}
	return n
}

// sortedPaths returns the keys of a map in natural order.
func sortedPaths[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), human.CompareNames)
}
