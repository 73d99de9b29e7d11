package fits_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/fits"
)

// The list runs from the largest GPU that holds neither form to the smallest that holds both. The
// largest module counts once for each GPU that shares the model.
func TestTable(t *testing.T) {
	for name, c := range map[string]struct {
		bf16, df11, largest int64
		want                string
	}{
		"8B":                     {16.06e9, 10.89e9, 1.05e9, "12 GB: false false, 16 GB: false true, 24 GB: true true"},
		"405B":                   {812e9, 551e9, 4.2e9, "4 × 80 GB: false false, 8 × 80 GB: false true, 8 × 141 GB: true true"},
		"tiny":                   {1e6, 7e5, 1e5, "8 GB: true true"},
		"the module decides":     {15e9, 9e9, 8e9, "12 GB: false false, 16 GB: true false, 24 GB: true true"},
		"a module for each GPU":  {150e9, 130e9, 30e9, "2 × 80 GB: true false, 4 × 80 GB: true true"},
		"larger than every node": {9e12, 6e12, 1e9, "16 × 141 GB: false false"},
	} {
		var rows []string
		for _, f := range (fits.Weights{BF16: c.bf16, DF11: c.df11, Largest: c.largest}).Table() {
			rows = append(rows, fmt.Sprintf("%s: %t %t", f, f.BF16, f.DF11))
		}
		if got := strings.Join(rows, ", "); !strings.HasSuffix(got, c.want) || name != "a module for each GPU" && got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
