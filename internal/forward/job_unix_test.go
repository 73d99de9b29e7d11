//go:build unix

package forward

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// What earlier runs left on the disk, in kept spools and in finished files that don't stay, is
// space for the run that reuses it. What only the target has isn't.
func TestWhatIsLeftOverCountsAsFree(t *testing.T) {
	const much = 1 << 50 // more than any disk
	free := func(stays bool, leftover ledger.Place, held ...ledger.Tensor) int64 {
		outputs := world.Got(spans.Outputs(&plan.Plan{OutputFiles: []plan.OutputFile{{Path: "o", Plain: []plan.Tensor{{Name: "a", Length: 25}}}}}))(t)
		outputs[0].Copied[0].Length = much
		p := &plan.Plan{}
		folder, err := publish.OpenFolder(t.Context(), t.TempDir(), stays, publish.NewConversion(p, publish.OriginOf(&model.Model{}), "part", false), 0o666)
		must(t, err)
		defer func() { must(t, folder.Close(true)) }()
		j := &Job{Model: &model.Model{}, Ledger: ledger.New("", stays), Folder: folder}
		must(t, j.Ledger.Add(ledger.Output{Path: "left", Size: much, Place: leftover}))
		must(t, j.Ledger.AddTensors(held))
		for _, x := range held {
			world.Write(t, filepath.Join(folder.State().Name(), names.KeptSpool(x.Output)), []byte{})
		}
		j.Leftovers = j.Ledger.Outputs()
		j.Outputs = outputs
		n := j.Space().ForOutputs(0)
		// no matter how much is free, the need is the same, and the sum is right
		if outputs[0].Size = 1e18; stays {
			err := j.Space().Check(2e18)
			if e := (*budget.DiskError)(nil); !errors.As(err, &e) || e.Need != 3e18 || e.Result != 1e18 || !strings.HasPrefix(e.Error(), folder.Name()+": ") ||
				!strings.Contains(e.Error(), " needed (1000000 TB result, 2000000 TB temporary): ") {
				t.Errorf("%v", err)
			}
		}
		return n
	}
	for name, c := range map[string]struct {
		n    int64
		more bool
	}{
		"nothing":              {free(false, ledger.Place{Uploaded: true}), false},
		"a finished file":      {free(false, ledger.Place{Here: true}), true},
		"a file that stays":    {free(true, ledger.Place{Here: true}), false},
		"a kept spool":         {free(false, ledger.Place{}, ledger.Tensor{Output: "o", At: 0}), true},
		"a spool of no use":    {free(false, ledger.Place{}, ledger.Tensor{Output: "o", At: 1}), false},
		"a spool of no output": {free(false, ledger.Place{}, ledger.Tensor{Output: "x", At: 0}), false},
	} {
		if more := c.n > much/2; more != c.more {
			t.Errorf("%s: %d bytes are free", name, c.n)
		}
	}
}
