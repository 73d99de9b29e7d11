package describe

import "math"

// Histogram counts weights by exponent.
type Histogram [256]uint64

// Add counts the exponents of little-endian BF16 weights, which it borrows.
func (h *Histogram) Add(bf16 []byte) {
	for i := 0; i+1 < len(bf16); i += 2 {
		h[bf16[i+1]<<1|bf16[i]>>7]++
	}
}

// merge adds the counts of another histogram, each multiplied by scale.
func (h *Histogram) merge(o *Histogram, scale float64) {
	for e, n := range o {
		h[e] += uint64(float64(n)*scale + 0.5)
	}
}

// Total returns the number of weights.
func (h *Histogram) Total() uint64 {
	var sum uint64
	for _, n := range h {
		sum += n
	}
	return sum
}

// Entropy returns the order-0 entropy in bits. No code that encodes every value separately has a
// shorter mean length.
func (h *Histogram) Entropy() float64 {
	total := float64(h.Total())
	var bits float64
	for _, n := range h {
		if n > 0 {
			p := float64(n) / total
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
