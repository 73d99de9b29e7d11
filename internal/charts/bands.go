package charts

import "github.com/df11-convert/df11-convert/internal/describe"

// bar is what a model takes in one format.
type bar struct {
	Format string
	Bytes  int64
	Bands  []band
}

// band is one colored stretch of a bar.
type band struct {
	Class, Name string
	Bytes       int64
}

// before are the bands of the model in BF16. The bytes that are the same before and after come first, so that the eye sees
// only the exponents shrink.
func before(r *describe.Report) []band {
	var coded int64 // weights in compressed units
	for _, u := range r.Units {
		if u.Reason == "" {
			coded += u.Weights
		}
	}
	return []band{
		{"c-s", "sign and mantissa", coded}, {"c-e", "exponents", coded},
		{"c-u", "unchanged", max(0, r.BF16Bytes-2*coded)},
	}
}

// after are the bands of the model in DF11.
func after(r *describe.Report) []band {
	bands := []band{{"c-s", "sign and mantissa", 0}, {"c-e", "coded exponents", 0}, {"c-o", "for the decoder", 0}, {"c-u", "unchanged", 0}}
	for _, p := range r.Parts {
		for i := range bands {
			if bands[i].Class == partClass(p.Name) {
				bands[i].Bytes += p.Bytes
			}
		}
	}
	return bands
}

// partClass is the color of a part of the stored bytes.
func partClass(name string) string {
	switch name {
	case describe.PartSignMantissa:
		return "c-s"
	case describe.PartExponents:
		return "c-e"
	case describe.PartPlain:
		return "c-u"
	}
	return "c-o"
}
