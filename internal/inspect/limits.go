package inspect

// Limit is how close a model comes to a limit of the format.
type Limit struct {
	Name, Unit string
	Value, Max int64
}

// Limits lists the largest value of each measure over the units.
func (r *Report) Limits() []Limit {
	list := []Limit{
		{Name: "weights in a module", Max: maxWeights},
		{Name: map[Kind]string{Source: "weights in a chunk, mean", DF11: "weights in the fullest chunk"}[r.Kind], Max: MaxChunk},
		{Name: "rows of lookup tables", Max: MaxLUTs},
		{Name: "largest exponent", Max: MaxExponent},
		{Name: "longest code, in bits", Max: 32},
	}
	for _, u := range r.Units {
		if u.Reason != "" {
			continue
		}
		for i, v := range []int64{u.Weights, int64(u.LargestChunk), int64(u.LUTs), int64(u.LargestExponent), int64(u.Longest)} {
			if v > list[i].Value {
				list[i].Value, list[i].Unit = v, u.Path
			}
		}
	}
	return list
}
