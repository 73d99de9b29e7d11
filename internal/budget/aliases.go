package budget

import (
	"bytes"
	"context"
	"fmt"

	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// How much of two tied tensors is compared before a conversion.
const (
	aliasRuns  = 8 // of each pair, if it's larger
	aliasBytes = 64 << 10
)

// SampleAliases compares tensors that aren't stored with those they must equal: small ones and with
// all also others whole, of the rest eight runs. It returns how many bytes it compared. A
// difference is a *spans.AliasError; if there is none, only the conversion shows that all bits are
// equal.
func SampleAliases(ctx context.Context, src model.Source, p *plan.Plan,
	all bool) (compared int64, err error) {
	for _, a := range p.Aliases {
		n := min(a.Tensor.Length, a.Of.Length)
		runs := (n + aliasBytes - 1) / aliasBytes
		if !all {
			runs = min(runs, aliasRuns)
		}
		for i := range runs {
			off := i * aliasBytes
			if runs*aliasBytes < n { // spread them from the first byte to the last
				off = (n - aliasBytes) * i / (runs - 1) &^ 3
			}
			size := min(aliasBytes, n-off)
			if err := compareRun(ctx, src, a, off, size); err != nil {
				return compared, err
			}
			compared += size
		}
	}
	return compared, nil
}

// compareRun compares size bytes of two tied tensors.
func compareRun(ctx context.Context, src model.Source, a plan.Alias, off, size int64) error {
	var read [2][]byte
	for i, t := range []plan.Tensor{a.Tensor, a.Of} {
		read[i] = make([]byte, size)
		if err := src.ReadRange(ctx, t.File, read[i], t.Offset+off); err != nil {
			return fmt.Errorf("compare %s with %s: %w", a.Tensor.Source, a.Of.Source, err)
		}
		if t.ExactF32 {
			read[i], _ = spans.Narrow(nil, read[i])
		}
	}
	if bytes.Equal(read[0], read[1]) {
		return nil
	}
	i := 0
	for read[0][i] == read[1][i] {
		i++
	}
	at := off
	if a.Tensor.ExactF32 {
		at /= 2
	}
	return &spans.AliasError{Name: a.Tensor.Name, Of: a.Of.Name, Byte: at + int64(i)}
}
