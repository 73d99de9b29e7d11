package spans

import (
	"cmp"
	"slices"
)

// A Segment is one tensor of a source file, [Off, End), and the outputs that need it.
type Segment struct {
	Off, End int64
	To       []Delivery
}

// Delivery says where a segment's bytes go. Unit is nil for a copied tensor.
type Delivery struct {
	Output *Output
	Unit   *Unit
	Tensor
}

// Segments lists what the outputs need from each of nFiles source files, in file order. Empty
// tensors have no segment.
func Segments(outputs []*Output, nFiles int) [][]Segment {
	files := make([]map[int64]*Segment, nFiles)
	for i := range files {
		files[i] = map[int64]*Segment{}
	}
	for _, o := range outputs {
		for t, u := range o.Tensors() {
			if t.Length == 0 {
				continue
			}
			s := files[t.File][t.Offset]
			if s == nil {
				s = &Segment{Off: t.Offset, End: t.Offset + t.Length}
				files[t.File][t.Offset] = s
			}
			s.To = append(s.To, Delivery{o, u, t})
		}
	}
	out := make([][]Segment, nFiles)
	for i, m := range files {
		for _, s := range m {
			out[i] = append(out[i], *s)
		}
		slices.SortFunc(out[i], func(a, b Segment) int { return cmp.Compare(a.Off, b.Off) })
	}
	return out
}
