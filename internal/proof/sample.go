package proof

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/exactf32"
)

// sample compares some chunks of every unit that is stored as DF11 with the original, of which it reads nothing else.
func (v *verification) sample(ctx context.Context) error {
	for _, o := range v.outputs {
		for _, u := range o.Units {
			if !v.DF11.Coded(u.Path) || v.noted[u.Path] {
				continue
			}
			opened, err := v.DF11.OpenUnit(u)
			if err != nil {
				return err
			}
			inexact := &exactf32.Count{}
			weights := exactf32.NewReader(ctx, v.Source, u.Unit, inexact)
			err = opened.CompareSample(ctx, weights, compareOptions(u, v.Workers), v.Chunks, v.Seed)
			if inexact := inexact.Err(v.Plan, exactf32.ScopeSample); inexact != nil {
				return inexact
			}
			err = v.unitFault(err, u.Path, func() (differing, of int64, err error) {
				return opened.CountSampleDifferences(ctx, weights, v.Workers, v.Chunks, v.Seed)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
