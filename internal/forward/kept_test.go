package forward

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/df11-convert/df11-convert/internal/forward/fetch"
	"github.com/df11-convert/df11-convert/internal/forward/spool"
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
// that is read earlier must be made again: both would wait forever. A spool that no journal lists,
// such as that of another commit of the source, is deleted, too.
func TestKeptSpoolsBlockNothing(t *testing.T) {
	const size = 100
	for disk, kept := range map[int64]bool{2 * size: true, 2*size - 1: false} {
		p := &plan.Plan{}
		for i, name := range []string{"first", "begun", "stale"} {
			x := plan.Tensor{Name: name, Source: name, Offset: int64(i * size), Length: size}
			p.OutputFiles = append(p.OutputFiles, plan.OutputFile{Path: name, Plain: []plan.Tensor{x}})
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
			},
			fetcher: &fetch.Fetcher{Tasks: fetch.NewTasks(outputs), Room: &spool.Room{Dir: dir, Disk: spool.NewBudget(disk)}},
		}
		must(t, m.reopenSpools(t.Context()))
		if got := m.fetcher.Tasks[1].Arrived() == size; got != kept || len(l.Tensors("begun")) > 0 != kept {
			t.Errorf("%d bytes of disk: the spool is taken up: %v", disk, got)
		}
		must(t, m.fetcher.Leave())
		left, err := filepath.Glob(filepath.Join(dir.Name(), "spool-*"))
		if must(t, err); len(left) > 1 || len(left) == 1 != kept {
			t.Errorf("%d bytes of disk: left are %v", disk, left)
		}
		must(t, folder.Close(true))
	}
}
