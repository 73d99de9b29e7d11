package describe

import (
	"encoding/json"
	"math"
)

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

// Bounds returns the first and the last exponent that occur. In an empty histogram, first > last.
func (h *Histogram) Bounds() (first, last int) {
	first, last = len(h), -1
	for e, n := range h {
		if n > 0 {
			first, last = min(first, e), e
		}
	}
	return first, last
}

// MarshalJSON writes the counts from the first exponent that occurs to the last.
func (h Histogram) MarshalJSON() ([]byte, error) {
	stored := struct {
		First  int      `json:"first"`
		Counts []uint64 `json:"counts"`
	}{Counts: []uint64{}}
	if first, last := h.Bounds(); last >= 0 {
		stored.First, stored.Counts = first, h[first:last+1]
	}
	return json.Marshal(stored)
}
