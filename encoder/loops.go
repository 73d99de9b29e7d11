package encoder

import "fmt"

// loops are the inner loops of one variant. Everything around them is shared.
type loops struct {
	name  string
	count func(h *histogram, bf16 []byte)
	split func(dst, bf16 []byte)
}

// Variants lists the variants that this machine can run, slowest first.
func Variants() []string {
	var names []string
	for _, l := range variants() {
		names = append(names, l.name)
	}
	return names
}

func variants() []loops {
	return []loops{{name: "go", count: countGo, split: splitGo}}
}

// findLoops returns the named variant, or the fastest for the empty name.
func findLoops(name string) (*loops, error) {
	list := variants()
	for i := range list {
		if list[i].name == name || name == "" && i == len(list)-1 {
			return &list[i], nil
		}
	}
	return nil, fmt.Errorf("encoder variant %q: this machine has %v", name, Variants())
}
