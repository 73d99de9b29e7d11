package inspect

// band is one colored stretch of a size bar.
type band struct {
	Class, Name string
	Bytes       int64
}

// coded is the number of weights in compressed units.
func (r *Report) coded() (n int64) {
	for _, u := range r.Units {
		if u.Reason == "" {
			n += u.Weights
		}
	}
	return n
}

// before are the bands of the model in BF16. The bytes that are the same before and after come first, so that the eye sees
// only the exponents shrink.
func (r *Report) before() []band {
	coded := r.coded()
	return []band{
		{"c-s", "sign and mantissa", coded}, {"c-e", "exponents", coded},
		{"c-u", "unchanged", max(0, r.BF16Bytes-2*coded)},
	}
}

// after are the bands of the model in DF11.
func (r *Report) after() []band {
	part := map[string]int64{}
	for _, p := range r.Parts {
		part[p.Name] = p.Bytes
	}
	return []band{
		{"c-s", "sign and mantissa", part[PartSignMantissa]}, {"c-e", "coded exponents", part[PartExponents]},
		{"c-o", "for the decoder", part[PartPlaces] + part[PartTables] + part[PartHeaders]}, {"c-u", "unchanged", part[PartPlain]},
	}
}

// saved says how much smaller the model gets.
func (r *Report) saved() string {
	return share(float64(r.BF16Bytes-r.DF11Bytes), float64(r.BF16Bytes)) + " saved"
}

// Bands are the stretches of the bar of a format: one for formats that are only computed.
func (r *Report) Bands(s Size) []band {
	switch s.Format {
	case "BF16":
		return r.before()
	case "DF11":
		return r.after()
	}
	return []band{{"c-x", s.Format, s.Bytes}}
}

// PartClass is the color of a part of the stored bytes.
func (r *Report) PartClass(name string) string {
	switch name {
	case PartSignMantissa:
		return "c-s"
	case PartExponents:
		return "c-e"
	case PartPlain:
		return "c-u"
	}
	return "c-o"
}
