package pipeline

import (
	"os"
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

// TestDiscardTakesWhatTheFileMade: every output that holds bytes of a broken source file goes, file and journal line, and what
// spools hold for it. Outputs of other files stay.
func TestDiscardTakesWhatTheFileMade(t *testing.T) {
	tensor := func(name string, file int) plan.Tensor { return plan.Tensor{Name: name, File: file, Length: 25} }
	outputs := spans.Outputs(&plan.Plan{OutputFiles: []plan.OutputFile{
		{Path: "of f", Plain: []plan.Tensor{tensor("a", 0)}}, {Path: "of both", Plain: []plan.Tensor{tensor("b", 1), tensor("c", 0)}},
		{Path: "of g", Plain: []plan.Tensor{tensor("d", 1)}},
	}})
	m := &model.Model{SHA256: []string{"x", "y"}}
	for _, path := range []string{"f", "g"} {
		m.Listing.Weights = append(m.Listing.Weights, plan.WeightFile{File: plan.File{Path: path}, Header: &safetensors.Header{}})
	}
	folder, err := target.OpenFolder(t.Context(), t.TempDir(), true, target.NewOwner(&plan.Plan{}, "", false), "part", &plan.Plan{}, 0o666)
	must(t, err)
	c := &conversion{Options: Options{Model: m}, outputs: outputs, folder: folder, ledger: ledger.New("", "", false)}
	for _, o := range outputs {
		must(t, os.WriteFile(folder.Path(o.Path), nil, 0o666))
		must(t, c.ledger.Add(ledger.Output{Path: o.Path, Place: ledger.Place{Here: true}}))
	}
	must(t, c.ledger.AddTensors([]ledger.Tensor{{Output: "of both"}}))
	c.ledger.AddFile(ledger.File{Path: "f"})
	must(t, c.discard("f"))
	for path, stays := range map[string]bool{"of f": false, "of both": false, "of g": true} {
		_, err = os.Stat(folder.Path(path))
		if c.ledger.Done(path) != stays || (err == nil) != stays {
			t.Errorf("%s: done is %t, and the file: %v", path, c.ledger.Done(path), err)
		}
	}
	if _, known := c.ledger.File("f"); known || len(c.ledger.Tensors("of both")) > 0 {
		t.Error("the ledger knows of the file")
	}
	must(t, folder.Close(true))
}

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
