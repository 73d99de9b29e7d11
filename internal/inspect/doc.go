// Package inspect turns exponent counts and sizes of a model into figures (entropy, bits per weight against the bound,
// headroom below the limits) and draws them as a report page and as a picture. It does not read models: its caller counts.
package inspect
