// Package fits computes which GPUs hold a model: its weights in BF16 or in DF11, and the keys and
// values of its context. It never looks at a GPU.
package fits

import "fmt"

// Weights are the bytes that a loaded model takes on a GPU.
type Weights struct {
	BF16, DF11 int64
	// Largest is the size in BF16 of the largest DF11 module. Each GPU that shares a DF11 model
	// decodes into a buffer of this size.
	Largest int64
}

// Fit says which forms of a model fit GPUs of one size.
type Fit struct {
	N    int64 // GPUs that share the model
	GiB  int64 // of each
	BF16 bool
	DF11 bool
	// The longest context that fits next to the weights, in tokens. It's 0 if the weights don't fit
	// or the config doesn't say how much a token takes.
	BF16Context int64
	DF11Context int64
	// What must fit next to the weights: sequences, each with that many tokens of context. They are 0
	// if only the weights count, as for a config that doesn't say how much a token takes. Limit is the
	// largest context that the config allows, or 0 if it doesn't say.
	Context   int64
	Sequences int64
	Limit     int64
}

// String returns "24 GB" or "8 × 80 GB". Makers count memory in GiB and call it GB.
func (f Fit) String() string {
	if f.N > 1 {
		return fmt.Sprintf("%d × %d GB", f.N, f.GiB)
	}
	return fmt.Sprintf("%d GB", f.GiB)
}

// sizes are the sizes in common use, by total memory: how many GPUs, and the GiB of each.
var sizes = [][2]int64{{1, 8}, {1, 12}, {1, 16}, {1, 24}, {1, 32}, {1, 40}, {1, 48}, {1, 80},
	{1, 96}, {1, 141}, {2, 80}, {4, 80}, {8, 80}, {8, 141}, {16, 141}}

// space returns how many bytes a model may take on these GPUs; 10% stays free for everything else.
func (f Fit) space() int64 { return f.N * f.GiB << 30 / 10 * 9 }

// On reports which forms fit n GPUs of gib GiB each, with a batch of sequences of context tokens.
func (w Weights) On(n, gib int64, c Cache, context, batch int64) Fit {
	f := Fit{N: n, GiB: gib}
	if len(c.layers) > 0 && context > 0 {
		f.Context, f.Sequences, f.Limit = context, batch, c.most
	}
	used := c.Bytes(context, batch)
	bf16, df11 := f.space()-w.BF16, f.space()-w.DF11-n*w.Largest
	f.BF16, f.DF11 = used <= bf16, used <= df11
	f.BF16Context, f.DF11Context = c.Longest(bf16, batch), c.Longest(df11, batch)
	return f
}

// Table lists the GPUs in common use, counting only the weights: from the largest that holds
// neither form to the smallest that holds both.
func (w Weights) Table() (rows []Fit) {
	for _, size := range sizes {
		f := w.On(size[0], size[1], Cache{}, 0, 1)
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
