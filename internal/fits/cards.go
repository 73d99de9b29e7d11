package fits

import (
	"maps"
	"slices"
	"strings"
)

// cards maps sizes of memory in GiB to graphics cards, as their makers list them. A card that comes
// in several sizes isn't here.
var cards = map[int64]string{
	8:   "4060 5060",
	11:  "2080ti",
	12:  "3080ti 4070 4070super 4070ti 5070",
	16:  "4070tisuper 4080 4080super 5070ti 5080 9070xt t4 p100",
	24:  "3090 3090ti 4090 7900xtx a10 a10g a30 l4",
	32:  "5090",
	48:  "6000ada a40 a6000 l40 l40s",
	64:  "mi210",
	80:  "h100",
	96:  "pro6000",
	141: "h200",
	192: "mi300x",
}

// Cards returns the names that [Card] knows, those with the least memory first.
func Cards() (names []string) {
	for _, gib := range slices.Sorted(maps.Keys(cards)) {
		names = append(names, strings.Fields(cards[gib])...)
	}
	return names
}

// Card returns the memory in GiB of a card such as "4090" or "RTX 4090". It's 0 if the name is
// unknown.
func Card(name string) int64 {
	name = inName.Replace(strings.ToLower(name))
	for gib, list := range cards {
		if slices.Contains(strings.Fields(list), name) {
			return gib
		}
	}
	return 0
}

// inName removes makers and separators from the name of a card.
var inName = strings.NewReplacer("nvidia", "", "geforce", "", "amd", "", "radeon", "", "rtx", "",
	"rx", "", " ", "", "-", "", "_", "")
