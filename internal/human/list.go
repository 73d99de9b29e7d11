package human

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// List names the first five of a list and says how many more there are.
func List(names []string) string {
	if len(names) > 6 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), len(names)-5)
	}
	return strings.Join(names, ", ")
}

// ByFolder lists files at the root by their names, and folders with the number of files in them.
// These are "other files" where a folder also holds one of others.
func ByFolder(files, others []string) (list []string) {
	n, isShared := map[string]int{}, map[string]bool{}
	for _, f := range others {
		if top, _, nested := strings.Cut(f, "/"); nested {
			isShared[top+"/"] = true
		}
	}
	var tops []string
	for _, f := range files {
		top, _, nested := strings.Cut(f, "/")
		if nested {
			top += "/"
		}
		if n[top]++; n[top] == 1 {
			tops = append(tops, top)
		}
	}
	for _, top := range tops {
		switch number := Grouped(int64(n[top])); {
		case isShared[top] && n[top] == 1:
			top += " (1 other file)"
		case isShared[top]:
			top += " (" + number + " other files)"
		case n[top] > 1:
			top += " (" + number + " files)"
		}
		list = append(list, top)
	}
	return list
}

// ByModule lists the names of tensors by their first parts, those of many with their number:
// "vae.* (248)".
func ByModule(tensors []string) (list []string) {
	groups := map[string][]string{}
	for _, t := range tensors {
		first, _, _ := strings.Cut(t, ".")
		groups[first] = append(groups[first], t)
	}
	for _, first := range slices.Sorted(maps.Keys(groups)) {
		name := groups[first][0]
		if n := len(groups[first]); n > 1 {
			name = fmt.Sprintf("%s.* (%s)", first, Grouped(int64(n)))
		}
		list = append(list, name)
	}
	return list
}
