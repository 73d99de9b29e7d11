package forward

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/progress"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// A kept spool is given up if the disk has no space for another one next to it, because an output
// that is read earlier must be made again: both would wait forever. It isn't given up for memory in
// which it would fit now that fewer outputs are missing. A spool that no journal lists, such as that
// of another commit of the source, is deleted, too.
func TestKeptSpoolsBlockNothing(t *testing.T) {
	const size = 100
	file := (&spans.Output{Size: size}).MaxBytes() // waits for its upload
	for _, x := range []struct {
		disk, memory int64
		kept         bool
	}{{file + 2*size, 0, true}, {file + 2*size - 1, 0, false}, {file + size, 1 << 20, true}, {file, 1 << 20, false}} {
		p := &plan.Plan{}
		for i, name := range []string{"first", "begun", "stale"} {
			tensor := plan.Tensor{Name: name, Source: name, DType: "BF16", Shape: []int64{1, size / 2}, Offset: int64(i * size), Length: size}
			p.Units = append(p.Units, plan.Unit{Path: name, Attrs: []plan.Tensor{tensor}})
			p.OutputFiles = append(p.OutputFiles, plan.OutputFile{Path: name, Units: []int{i}})
		}
		outputs := world.Got(spans.Outputs(p))(t)
		folder, err := publish.OpenFolder(t.Context(), t.TempDir(), false, publish.NewConversion(&plan.Plan{}, publish.OriginOf(&model.Model{}), "part", false), 0o666)
		must(t, err)
		dir, l := folder.State(), ledger.New("", false)
		for _, o := range outputs[1:] {
			must(t, os.WriteFile(filepath.Join(dir.Name(), names.KeptSpool(o.Path)), make([]byte, size), 0o666))
		}
		must(t, l.AddTensors([]ledger.Tensor{{Output: "begun", CRC: 0x07cb9ff6}}))
		m := &maker{
			Job: &Job{
				Model: &model.Model{SHA256: []string{""}}, Outputs: outputs, Ledger: l, Folder: folder,
				Means: Means{Progress: new(progress.Counters)}, Log: slog.New(slog.DiscardHandler),
				Disk: x.disk, Memory: budget.Memory{Spools: x.memory},
			},
		}
		d, err := m.Divide()
		must(t, err)
		m.fetcher = m.Job.fetcher(d.Shares)
		must(t, m.reopenSpools(t.Context(), d.begun))
		if got := m.fetcher.Tasks[1].Arrived() == size; got != x.kept || len(l.Tensors("begun")) > 0 != x.kept {
			t.Errorf("%+v: the spool is taken up: %v", x, got)
		}
		must(t, m.fetcher.Close())
		left, err := filepath.Glob(filepath.Join(dir.Name(), "spool-*"))
		if must(t, err); len(left) > 1 || len(left) == 1 != x.kept {
			t.Errorf("%+v: left are %v", x, left)
		}
		must(t, folder.Close(true))
	}
}

// TestOnlyASpoolHoldsTensors checks that the tensors of an output which someone has removed after it
// was finished, and its spool with it, count neither as free disk nor as begun.
func TestOnlyASpoolHoldsTensors(t *testing.T) {
	x := plan.Tensor{Name: "w", Source: "w", DType: "BF16", Shape: []int64{1, 50}, Length: 100}
	outputs := world.Got(spans.Outputs(&plan.Plan{OutputFiles: []plan.OutputFile{{Path: "out", Plain: []plan.Tensor{x}}}}))(t)
	folder, err := publish.OpenFolder(t.Context(), t.TempDir(), false, publish.NewConversion(&plan.Plan{}, publish.OriginOf(&model.Model{}), "part", false), 0o666)
	must(t, err)
	l := ledger.New("", false)
	must(t, l.AddTensors([]ledger.Tensor{{Output: "out"}}))
	j := &Job{Model: &model.Model{SHA256: []string{""}}, Outputs: outputs, Ledger: l, Folder: folder}
	for _, want := range []int64{0, 100} {
		if got := j.heldBytes(outputs[0]); got != want || len(j.begun(outputs)) > 0 != (want > 0) {
			t.Errorf("%d bytes are held, want %d; begun: %d", got, want, len(j.begun(outputs)))
		}
		world.Write(t, filepath.Join(folder.State().Name(), names.KeptSpool("out")), make([]byte, 100))
	}
	must(t, folder.Close(true))
}
