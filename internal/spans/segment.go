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
	type place struct {
		file int
		off  int64
	}
	found := map[place]Segment{}
	for _, o := range outputs {
		for t, u := range o.Tensors() {
			if at := (place{t.File, t.Offset}); t.Length > 0 {
				to := append(found[at].To, Delivery{o, u, t})
				found[at] = Segment{t.Offset, t.Offset + t.Length, to}
			}
		}
	}
	files := make([][]Segment, nFiles)
	for at, s := range found {
		files[at.file] = append(files[at.file], s)
	}
	for _, f := range files {
		slices.SortFunc(f, func(a, b Segment) int { return cmp.Compare(a.Off, b.Off) })
	}
	return files
}
