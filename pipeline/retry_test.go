package pipeline

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// TestFileThatCannotBeRebuiltStartsAnew: what was made of a file with tensors outside the model counts only if one run has read all of
// the file and nothing of it is missing. Outputs of other files stay.
func TestFileThatCannotBeRebuiltStartsAnew(t *testing.T) {
	tensor := func(name string, file int) plan.Tensor { return plan.Tensor{Name: name, File: file, Length: 25} }
	p := &plan.Plan{
		OutputFiles: []plan.OutputFile{
			{Path: "a", Plain: []plan.Tensor{tensor("a", 0)}}, {Path: "b", Plain: []plan.Tensor{tensor("b", 0)}},
			{Path: "c", Plain: []plan.Tensor{tensor("c", 1)}},
		},
	}
	p.Dropped = []plan.Tensor{tensor("outside", 0)}
	m := &model.Model{SHA256: []string{"x", "y"}}
	for _, path := range []string{"f", "g"} {
		m.Listing.Weights = append(m.Listing.Weights, plan.WeightFile{File: plan.File{Path: path}, Header: &safetensors.Header{}})
	}
	for name, tc := range map[string]struct {
		known, all, stays bool
	}{"all of it": {true, true, true}, "an output is missing": {true, false, false}, "the hash is missing": {false, true, false}} {
		c := &conversion{Options: Options{Model: m, Plan: p}, outputs: spans.Outputs(p), ledger: ledger.New("", "", false)}
		must(t, c.ledger.Add(ledger.Output{Path: "a", Place: ledger.Place{Uploaded: true}}))
		must(t, c.ledger.Add(ledger.Output{Path: "c", Place: ledger.Place{Uploaded: true}}))
		must(t, c.ledger.AddTensors([]ledger.Tensor{{Output: "b"}}))
		if tc.all {
			must(t, c.ledger.Add(ledger.Output{Path: "b", Place: ledger.Place{Uploaded: true}}))
		}
		if tc.known {
			c.ledger.AddFile(ledger.File{Path: "f"})
		}
		must(t, c.restartFiles())
		_, known := c.ledger.File("f")
		if c.ledger.Done("a") != tc.stays || known != tc.stays || !c.ledger.Done("c") || len(c.ledger.Tensors("b")) > 0 {
			t.Errorf("%s: a is done: %t, f is known: %t, c is done: %t", name, c.ledger.Done("a"), known, c.ledger.Done("c"))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
