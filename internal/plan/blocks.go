package plan

import (
	"strings"
)

// maxElems is the largest unit that the loader's 32-bit counters can hold (docs/format.md §9).
const maxElems = 1<<31 - 1

// A former forms the dict and the units of a model.
type former struct {
	*choice
	inv *inventory

	fused map[string][]string // of inv, once fusedBelow was called
}

// isUnit reports whether a block becomes a unit: the class builds it, and the catalog doesn't leave
// it in BF16.
func (f *former) isUnit(block string) bool {
	return !f.cfg.IsExtraLayer(block) && !f.entry.Keeps(block)
}

// A blockGroup is the blocks that have the same attributes.
type blockGroup struct {
	below   string // regex of modules inside the blocks; "" if the blocks themselves are units
	attrs   []string
	indices []int
	modules []string
}

// blockGroups groups blocks by their attributes, in the order of their first block.
type blockGroups struct {
	list  []blockGroup
	place map[string]int // below and attributes → index in list
}

func (g *blockGroups) add(below string, attrs []string, index int, module string) {
	if g.place == nil {
		g.place = map[string]int{}
	}
	key := below + "\n" + strings.Join(attrs, "\n")
	i, ok := g.place[key]
	if !ok {
		i = len(g.list)
		g.place[key] = i
		g.list = append(g.list, blockGroup{below: below, attrs: attrs})
	}
	g.list[i].indices = append(g.list[i].indices, index)
	g.list[i].modules = append(g.list[i].modules, module)
}
