package fits

import "strings"

// cards maps graphics cards to their memory in GiB, as their makers list it. A card that comes in
// several sizes isn't here.
var cards = map[string]int64{
	"2080ti": 11, "3080ti": 12, "3090": 24, "3090ti": 24,
	"4060": 8, "4070": 12, "4070super": 12, "4070ti": 12, "4070tisuper": 16, "4080": 16,
	"4080super": 16, "4090": 24, "5060": 8, "5070": 12, "5070ti": 16, "5080": 16, "5090": 32,
	"t4": 16, "p100": 16, "a10": 24, "a10g": 24, "l4": 24, "a30": 24, "a40": 48, "a6000": 48,
	"6000ada": 48, "l40": 48, "l40s": 48, "h100": 80, "h200": 141, "pro6000": 96,
	"7900xtx": 24, "9070xt": 16, "mi210": 64, "mi300x": 192,
}

// Card returns the memory in GiB of a card such as "4090" or "RTX 4090". It's 0 if the name is
// unknown.
func Card(name string) int64 {
	name = strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '_' {
			return -1
		}
		return r
	}, strings.ToLower(name))
	for _, maker := range []string{"nvidia", "geforce", "amd", "radeon", "rtx", "rx"} {
		name = strings.TrimPrefix(name, maker)
	}
	return cards[name]
}
