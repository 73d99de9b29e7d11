package pipeline

import (
	"testing"

	"github.com/df11-convert/df11-convert/encoder"
	"github.com/df11-convert/df11-convert/internal/fetch"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// twoTensors is an attempt at the output o, which is made of the tensors [20, 45) and [45, 70) of the file f of 100 bytes.
func twoTensors() *attempt {
	tensor := func(name string, off int64) plan.Tensor { return plan.Tensor{Name: name, Offset: off, Length: 25} }
	p := &plan.Plan{OutputFiles: []plan.OutputFile{{Path: "o", Plain: []plan.Tensor{tensor("a", 20), tensor("b", 45)}}}}
	outputs := spans.Outputs(p)
	m := &model.Model{SHA256: []string{"x"}}
	m.Listing.Weights = []plan.WeightFile{{File: plan.File{Path: "f", Size: 100}, Header: &safetensors.Header{}}}
	return &attempt{
		conversion: &conversion{ledger: ledger.New("", "", false), files: fetch.Files(m, outputs)}, tasks: fetch.NewTasks(outputs),
	}
}

func at(offset int64) ledger.Checkpoint {
	return ledger.Checkpoint{File: "f", Offset: offset, State: []byte{byte(offset)}}
}

// TestTrimCheckpoints: a checkpoint is forgotten as soon as bytes before it are missing; that one tensor of two is there is
// no reason to go on behind the other.
func TestTrimCheckpoints(t *testing.T) {
	proved := ledger.Checkpoint{File: "f", Integrity: metadata.Proof, SHA256: "x"}
	for name, c := range map[string]struct {
		held          []int64 // tensors of the kept spool, by spool offset
		before        []ledger.Checkpoint
		done          bool
		want          int64
		wantIntegrity metadata.Integrity
	}{
		"all is there":         {[]int64{0, 25}, []ledger.Checkpoint{at(10), at(45), at(70)}, false, 70, ""},
		"the second is gone":   {[]int64{0}, []ledger.Checkpoint{at(10), at(45), at(70)}, false, 45, ""},
		"the first is gone":    {[]int64{25}, []ledger.Checkpoint{at(10), at(45), at(70)}, false, 10, ""},
		"the spool is gone":    {nil, []ledger.Checkpoint{at(10), at(45), at(70)}, false, 10, ""},
		"an output is gone":    {nil, []ledger.Checkpoint{at(30)}, false, 0, ""},
		"an output is done":    {nil, []ledger.Checkpoint{at(10), at(70)}, true, 70, ""},
		"a proved one is gone": {[]int64{0, 25}, []ledger.Checkpoint{proved}, false, 0, ""},
		"a proved one is done": {nil, []ledger.Checkpoint{proved}, true, 0, metadata.Proof},
	} {
		a := twoTensors()
		for _, off := range c.held {
			must(t, a.ledger.AddTensors([]ledger.Tensor{{Output: "o", At: off}}))
		}
		if c.done {
			must(t, a.ledger.Add(ledger.Output{Path: "o", Place: ledger.Place{Here: true}, Prefixes: []ledger.Prefix{{File: "f", End: 70}}}))
		}
		for _, x := range c.before {
			must(t, a.ledger.AddCheckpoint(x))
		}
		a.trimCheckpoints()
		if got := a.ledger.Checkpoint("f", 1<<40); got.Offset != c.want || got.Integrity != c.wantIntegrity {
			t.Errorf("%s: %+v, want %d %s", name, got, c.want, c.wantIntegrity)
		}
		if a.files[0].ByRange {
			t.Errorf("%s: the file is not streamed", name)
		}
	}
}

// TestUnhashedOutputIsNoStream: a file is not streamed any more once an output holds bytes of it that came under no hash: what
// passes now would not be compared with them.
func TestUnhashedOutputIsNoStream(t *testing.T) {
	for name, prefixes := range map[string][]ledger.Prefix{"no hash": nil, "of another file": {{File: "g", End: 70}}} {
		a := twoTensors()
		must(t, a.ledger.Add(ledger.Output{Path: "o", Place: ledger.Place{Here: true}, Prefixes: prefixes}))
		a.trimCheckpoints()
		if !a.files[0].ByRange {
			t.Errorf("%s: the file is streamed", name)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCountersGo: the counts of a unit end with it. Those of a whole model of 811 GB would take 3 GB.
func TestCountersGo(t *testing.T) {
	c, err := encoder.NewCounter([]int64{4})
	must(t, err)
	c.Add(0, []byte{0, 0x3f, 0, 0x3e, 0, 0x3f, 0, 0x3d})
	x := &fetch.Task{Output: &spans.Output{Units: []*spans.Unit{{}}}, Counters: []*encoder.Counter{c}, Reasons: make([]string, 1)}
	coded, err := finishCounts(x)
	if must(t, err); x.Counters[0] != nil || coded[0] == nil {
		t.Error(x.Counters, coded)
	}
}
