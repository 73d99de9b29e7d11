package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// parent returns the path up to the last dot, or "".
func parent(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

// leaf returns what follows the last dot.
func leaf(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// naturalCompare orders names with numbers by their value: layers.2 before layers.10.
func naturalCompare(a, b string) int {
	for a != "" && b != "" {
		m, n := digits(a), digits(b)
		if m == 0 || n == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:m], "0"), strings.TrimLeft(b[:n], "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(m, n)); c != 0 { // 1 before 01
			return c
		}
		a, b = a[m:], b[n:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits counts the digits at the start of s.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// shardNumber matches the end of the name of a shard: -00001-of-00002.
var shardNumber = regexp.MustCompile(`-\d+-of-\d+$`)

// hasStem says whether a file's name, without its extension, is stem or that of a shard of it.
func hasStem(name, stem string) bool { return shardNumber.ReplaceAllString(name, "") == stem }

// sample lists at most three of the names, and how many more there are.
func sample(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// count puts a number before a noun, with an s where there is not exactly one.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
