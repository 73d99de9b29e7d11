package describe

import (
	"regexp"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/inspect"
)

// missedElems is how many weights are read of a module of which the samples of its unit have none.
const missedElems = 4 << 10

// tally counts weights of one unit by module.
type tally struct {
	modules []inspect.Module
	of      []int   // module of each tensor of the unit
	ends    []int64 // running sums of the tensors' weights
	plain   inspect.Histogram
	seen    bool
}

var numbers = regexp.MustCompile(`\d+`)

// newTally makes a tally for tensors with these names and weights. Tensors whose names differ only in numbers are one module.
func newTally(names []string, sizes []int64) *tally {
	t := &tally{}
	var end int64
	for i, n := range sizes {
		name := numbers.ReplaceAllString(strings.Trim(names[i], "."), "*")
		m := slices.IndexFunc(t.modules, func(m inspect.Module) bool { return m.Name == name })
		if m < 0 {
			m = len(t.modules)
			t.modules = append(t.modules, inspect.Module{Name: name})
		}
		t.modules[m].Tensors++
		t.modules[m].Weights += n
		end += n
		t.of, t.ends = append(t.of, m), append(t.ends, end)
	}
	return t
}

// add counts BF16 weights, which are borrowed, from number elem of the unit on.
func (t *tally) add(elem int64, bf16 []byte) {
	t.seen = true
	t.plain.AddPlain(bf16)
	t.split(elem, bf16)
}

// split counts exponents by module.
func (t *tally) split(elem int64, bf16 []byte) {
	i, _ := slices.BinarySearch(t.ends, elem+1)
	for ; len(bf16) > 0 && i < len(t.ends); i++ {
		n := min(t.ends[i]-elem, int64(len(bf16)/2))
		t.modules[t.of[i]].Histogram.Add(bf16[:2*n])
		elem, bf16 = elem+n, bf16[2*n:]
	}
}

// missed reads a few weights of every module that the samples of a sampled unit have missed.
func (t *tally) missed(read func(elem, n int64, bf16 []byte) error) error {
	var begin int64
	for i, end := range t.ends {
		if m := &t.modules[t.of[i]]; t.seen && end > begin && m.Histogram.Total() == 0 {
			n := min(missedElems, end-begin)
			elem, buf := begin+(end-begin-n)/2, make([]byte, 2*n)
			if err := read(elem, n, buf); err != nil {
				return err
			}
			t.split(elem, buf)
		}
		begin = end
	}
	return nil
}
