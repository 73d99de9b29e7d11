package charts

import (
	"fmt"
	"image/color"

	"github.com/df11-convert/df11-convert/internal/describe"
)

// band is one colored stretch of a bar.
type band struct {
	describe.Part
	color, text color.NRGBA
}

// before returns the bands of the model in BF16. The bytes that stay the same come first, so that
// only the exponents seem to shrink.
func before(r *describe.Report) []band {
	return []band{
		{describe.Part{Name: "sign and mantissa", Bytes: r.Weights}, silver, dark},
		{describe.Part{Name: "exponents", Bytes: r.Weights}, teal, white},
		{describe.Part{Name: "unchanged", Bytes: max(0, r.BF16Bytes-2*r.Weights)}, slate, dark},
	}
}

// after returns the bands of the model in DF11.
func after(r *describe.Report) []band {
	p := r.Parts.List()
	return []band{{p[0], silver, dark}, {p[1], teal, white}, {p[2], orange, dark},
		{p[3], slate, dark}}
}

// share formats part of whole in percent.
func share(part, whole int64) string {
	p := 100 * float64(part) / float64(max(1, whole))
	switch {
	case p > 0 && p < 0.01:
		return "< 0.01%"
	case p < 10:
		return fmt.Sprintf("%.2f%%", p)
	}
	return fmt.Sprintf("%.1f%%", p)
}
