package metadata

import (
	"fmt"
	"slices"
)

// GPU is a row of the card's table of GPUs.
type GPU struct {
	Name       string // "24 GB", "8 × 80 GB"
	BF16, DF11 bool   // whether it holds the weights in that form
}

// gpus are the sizes in common use, by memory in all. Makers count it in GiB.
var gpus = []struct {
	n, size int64 // GPUs that share the model, GiB of each
}{
	{1, 8}, {1, 12}, {1, 16}, {1, 24}, {1, 32}, {1, 40}, {1, 48}, {1, 80}, {1, 96}, {1, 141},
	{2, 80}, {4, 80}, {8, 80}, {8, 141}, {16, 141},
}

// GPUs tells which GPUs hold the weights with a tenth of their memory to spare: from the largest that holds neither form to
// the smallest that holds both. Each GPU that shares a model decodes into a buffer of its own.
func (in CardInput) GPUs() []GPU {
	var rows []GPU
	for _, g := range gpus {
		name, room := fmt.Sprintf("%d GB", g.size), g.n*g.size<<30/10*9
		if g.n > 1 {
			name = fmt.Sprintf("%d × %s", g.n, name)
		}
		row := GPU{name, in.SourceBytes <= room, in.OutputBytes+g.n*in.LargestModule() <= room}
		if !row.BF16 && !row.DF11 {
			rows = nil
		}
		rows = append(rows, row)
		if row.BF16 && row.DF11 {
			break
		}
	}
	return rows
}

// LargestModule is the size in BF16 of the largest module that is stored as DF11: the buffer that it is decoded into.
func (in CardInput) LargestModule() (nBytes int64) {
	for _, u := range in.Plan.Units {
		if !slices.ContainsFunc(in.KeptBF16, func(k KeptUnit) bool { return k.Path == u.Path }) {
			nBytes = max(nBytes, 2*u.NElems())
		}
	}
	return nBytes
}
