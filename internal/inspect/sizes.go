package inspect

// Size is what the model takes in one format.
type Size struct {
	Format   string `json:"format"`
	Bytes    int64  `json:"bytes"`
	Lossless bool   `json:"lossless"`
	Measured bool   `json:"measured"` // not computed from the number of weights
}

// sizes compares DF11 with other formats for the same coded weights; everything else stays as it is. INT4 is counted with a
// 16-bit scale for every 128 weights.
func (r *Report) sizes(coded int64) []Size {
	if r.DF11Bytes == 0 || coded == 0 {
		return nil
	}
	rest := max(0, r.BF16Bytes-2*coded)
	return []Size{
		{"BF16", r.BF16Bytes, true, true},
		{"DF11", r.DF11Bytes, true, r.Kind == DF11 || r.Exact},
		{"FP8", rest + coded, false, false},
		{"INT4", rest + coded/2 + coded/64, false, false},
	}
}

// GPU says whether the weights fit a GPU with so much memory.
type GPU struct {
	GiB  int  `json:"gib"`
	BF16 bool `json:"bf16_fits"`
	DF11 bool `json:"df11_fits"`
}

// gpus lists what fits common sizes of GPU memory, up to the first that holds both, of which a tenth is left for activations and cache. DF11 needs room for
// the largest block that is decoded at once, besides the stored weights.
func (r *Report) gpus() (list []GPU) {
	if r.DF11Bytes == 0 || r.LargestBlock == 0 {
		return nil
	}
	for _, gib := range []int{8, 12, 16, 24, 32, 48, 80, 96, 141, 192} {
		room := int64(gib) << 30 / 10 * 9
		g := GPU{gib, r.BF16Bytes <= room, r.DF11Bytes+r.LargestBlock <= room}
		if list = append(list, g); g.BF16 && g.DF11 {
			break // and so in all larger ones
		}
	}
	return list
}
