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
	rest := max(0, r.BF16Bytes-2*coded)
	return []Size{
		{"BF16", r.BF16Bytes, true, true},
		{"DF11", r.DF11Bytes, true, r.Kind == DF11 || r.Exact},
		{"FP8", rest + coded, false, false},
		{"INT4", rest + coded/2 + coded/64, false, false},
	}
}
