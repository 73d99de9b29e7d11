package metadata

import "fmt"

// Fit says which forms of a model GPUs of one size hold. The GPUs of this machine are not looked
// at.
type Fit struct {
	N    int64 `json:"n"`   // GPUs that share the model
	GiB  int64 `json:"gib"` // of each
	BF16 bool  `json:"bf16_fits"`
	DF11 bool  `json:"df11_fits"`
}

// String is "24 GB" or "8 × 80 GB": makers count memory in GiB and call it GB.
func (f Fit) String() string {
	if f.N > 1 {
		return fmt.Sprintf("%d × %d GB", f.N, f.GiB)
	}
	return fmt.Sprintf("%d GB", f.GiB)
}

// gpuSizes are those in common use, by memory in all.
var gpuSizes = []Fit{
	{N: 1, GiB: 8}, {N: 1, GiB: 12}, {N: 1, GiB: 16}, {N: 1, GiB: 24}, {N: 1, GiB: 32},
	{N: 1, GiB: 40}, {N: 1, GiB: 48}, {N: 1, GiB: 80},
	{N: 1, GiB: 96}, {N: 1, GiB: 141}, {N: 2, GiB: 80}, {N: 4, GiB: 80}, {N: 8, GiB: 80},
	{N: 8, GiB: 141}, {N: 16, GiB: 141},
}

// Holding says which forms these GPUs hold, by the rule of [Fits].
func (f Fit) Holding(bf16, df11, largest int64) Fit {
	room := f.N * f.GiB << 30 / 10 * 9
	f.BF16, f.DF11 = bf16 <= room, df11+f.N*largest <= room
	return f
}

// Fits lists which GPUs hold bf16 or df11 bytes of weights with a tenth of their memory to spare:
// from the largest that holds neither form to the smallest that holds both. Each GPU that shares a
// DF11 model decodes into a buffer of its own, which is as large as the largest module in BF16.
func Fits(bf16, df11, largest int64) []Fit {
	var rows []Fit
	for _, f := range gpuSizes {
		f = f.Holding(bf16, df11, largest)
		if !f.BF16 && !f.DF11 {
			rows = nil
		}
		rows = append(rows, f)
		if f.BF16 && f.DF11 {
			break
		}
	}
	return rows
}
