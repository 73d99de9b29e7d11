package metadata

import (
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// reasons are the texts for why DF11 can't hold a unit (docs/format.md §6, §9).
var reasons = map[string]string{
	"exponent_range": "has weights of 2^113 or more, Inf or NaN",
	"too_many_luts":  "needs more lookup tables than the decoder has room for",
	"shared_memory":  "packs more weights into a block than the decoder has memory for",
	"official_crash": "has too few different exponents for the format",
	"too_large":      "has more than 2^31-1 weights",
	"empty":          "has no weights",
}

// ReasonText returns why a unit stays in BF16, in words. For an unknown reason it returns the
// reason, escaped for Markdown.
func ReasonText(reason string) string {
	if words, ok := reasons[reason]; ok {
		return words
	}
	return plainText(reason)
}

// CheckGain refuses a model if DF11 can hold none of its modules: the result would be as large as the
// source. units are all of them.
func CheckGain(units []Unit) error {
	var paths []string
	same := true
	for _, u := range units {
		if u.Status != BF16 {
			return nil
		}
		same = same && u.Reason == units[0].Reason
		paths = append(paths, u.Path)
	}
	if len(units) == 0 {
		return nil
	}
	detail := "each module " + ReasonText(units[0].Reason) + ": " + human.List(paths)
	if !same {
		for i, u := range units {
			paths[i] += " " + ReasonText(u.Reason)
		}
		detail = human.List(paths)
	}
	return &plan.RefusedError{Detail: "DF11 can hold no module: " + detail, Hint: hint.NoGain}
}
