package pipeline_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/spool"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// severalTensors is a model of 3.7 MB of which no tensor is larger than 512 KiB: what lies whole in a spool can be told from
// what was under way.
func severalTensors(order hubtest.Order) *hubtest.Model {
	return hubtest.NewLlama(13, hubtest.ModelOptions{
		Hidden: 128, Intermediate: 1024, Vocab: 2000, Layers: 3, ShardBytes: 2_000_000, Order: order, Extra: noPicture,
	})
}

// mediumHead is a model of 11 MB of which two tensors take 4 MB each.
func mediumHead() *hubtest.Model {
	return hubtest.NewLlama(13, hubtest.ModelOptions{Hidden: 256, Heads: 4, Vocab: 8000, Layers: 2, Extra: noPicture})
}

// underWay bounds what a fetcher of severalTensors has read of tensors that are not whole yet: one tensor, and the ranges that
// the client asks for ahead.
const underWay = 2000*128*2 + aheadBytes

// onDisk makes every spool a file.
func onDisk(o *pipeline.Options) { o.Memory.Spools = -1 }

// keepCases are the ways in which tensors are fetched, with the runs that a conversion takes.
var keepCases = map[string]struct {
	order hubtest.Order
	runs  []func(*pipeline.Options)
	kills []int // after so many percent of the reads
}{
	"in order": {hubtest.OrderModel, []func(*pipeline.Options){onDisk}, []int{40, 80}},
	"part":     {hubtest.OrderModel, []func(*pipeline.Options){inPart, finishing}, []int{80}},
}

func finishing(o *pipeline.Options) { o.Finish = true }

// journalFile is the journal of a whole conversion in its folder.
const journalFile = ".df11-convert/part-1-of-1.json"

// readJournal reads the journal of a work folder, which is empty if there is none.
func readJournal(t *testing.T, p *plan.Plan, work string) *ledger.Ledger {
	t.Helper()
	l := ledger.New(p.Digest(), spans.Part{}.String(), false)
	journal, err := os.ReadFile(filepath.Join(work, journalFile))
	if err == nil {
		err = l.Read(journal)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	return l
}

// kept counts the source bytes that a work folder saves the next run: of outputs that are finished, and of tensors that the
// journal says are whole in a spool that is still there, which that of a file without a name is not.
func kept(t *testing.T, p *plan.Plan, work string) (n int64) {
	t.Helper()
	l := readJournal(t, p, work)
	for _, o := range spans.Outputs(p) {
		_, gone := os.Stat(spool.KeptPath(filepath.Join(work, ".df11-convert"), o))
		for x := range o.Tensors() {
			whole := func(h ledger.Tensor) bool { return h.At == x.At }
			if l.Done(o.Path) || gone == nil && slices.ContainsFunc(l.Tensors(o.Path), whole) {
				n += x.Length
			}
		}
	}
	return n
}

// killed runs a conversion up to the k-th read of weights and gives a work folder as a kill at that moment leaves it.
func (w *world) killed(t *testing.T, k int, change ...func(*pipeline.Options)) (work string) {
	t.Helper()
	work, err := w.killedIn(t, t.TempDir(), k, change...)
	if !errors.Is(err, errStop) {
		t.Fatalf("kill at %d: %v", k, err)
	}
	return work
}

// killedIn does the same with a run that goes on in a folder. It may end before it is killed.
func (w *world) killedIn(t *testing.T, live string, k int, change ...func(*pipeline.Options)) (work string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	dead := t.TempDir()
	var once sync.Once
	w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Nth: k, Times: hubtest.Always, Action: func(x *hubtest.Exchange) {
		once.Do(func() { // later reads wait too, this one among them if it is asked again
			if w.beforeKill != nil {
				w.beforeKill(live)
			}
			copyAsKilled(t, live, dead)
			cancel(errStop)
		})
		x.Next(x.ResponseWriter)
	}})
	_, err = w.convert(ctx, t, live, change...)
	w.ClearFaults()
	noGoroutines(t)
	w.era++
	return dead, err
}

// copyAsKilled copies a folder while a run works in it and waits for a read that does not come: once the run has come to a
// halt, and nothing changes meanwhile, the copy is what a kill would leave.
func copyAsKilled(t *testing.T, from, to string) {
	for before := []string{"?"}; ; {
		now := listing(t, from)
		if slices.Equal(before, now) {
			return
		}
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
			return
		}
		before = now
		if after := listing(t, from); !slices.Equal(after, now) {
			before = nil
		}
		time.Sleep(20 * time.Millisecond) // longer than the clock of any file system
	}
}

// listing tells for each file below a folder when it was last written.
func listing(t *testing.T, dir string) (files []string) {
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files = append(files, fmt.Sprint(name, info.Size(), info.ModTime()))
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	return files
}

// sampled leaves out a case of many that are alike, where there is little time.
func sampled(t *testing.T, chosen bool) {
	if testing.Short() && !chosen {
		t.Skip("-short takes a sample")
	}
}

// catchUp waits until the journal of a run names all that was sent so far but for some bytes.
func (w *world) catchUp(t *testing.T, p *plan.Plan, work string, but int64) {
	t.Helper()
	for begun := time.Now(); kept(t, p, work) < w.sourceBytes()-but; time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Errorf("the journal names %d bytes, %d were sent", kept(t, p, work), w.sourceBytes())
			return
		}
	}
}

// killedInSpool runs a conversion of severalTensors, of which all of an undisturbed run's reads are given, and gives a work
// folder as a kill leaves it in the middle of an output: the journal names all that it can, and tensors in a spool.
func (w *world) killedInSpool(t *testing.T, p *plan.Plan, reads int, change ...func(*pipeline.Options)) (work string) {
	t.Helper()
	w.beforeKill = func(work string) {
		w.catchUp(t, p, work, underWay)
		halfFull := func(s keptSpool) bool {
			if len(s.named) == 0 {
				return false
			}
			missing := -len(s.named)
			for range s.output.Tensors() {
				missing++
			}
			return missing > 0
		}
		for begun := time.Now(); !halfFull(largestSpool(t, p, work)); time.Sleep(time.Millisecond) {
			if time.Since(begun) > patience {
				t.Error("the journal names no spool that is half full")
				return
			}
		}
	}
	return w.killed(t, reads*8/10, append(change, onDisk)...)
}

// TestKilledSpoolIsTakenUp: after a kill, a run on the same disk fetches only what the journal does not name: nothing but the
// tensors that were under way. The bytes are the same as ever.
func TestKilledSpoolIsTakenUp(t *testing.T) {
	t.Parallel()
	for name, c := range keepCases {
		t.Run(name, func(t *testing.T) {
			sampled(t, name == "part")
			want := reference(t, severalTensors(c.order))
			base := newWorld(t, severalTensors(c.order))
			if _, err := base.convert(t.Context(), t, t.TempDir(), onDisk, c.runs[0]); err != nil {
				t.Fatal(err)
			}
			once, reads := base.sourceBytes(), base.Count("GET", "/repos/*")
			p := base.planned(t)
			for _, share := range c.kills {
				w := newWorld(t, severalTensors(c.order))
				w.beforeKill = func(work string) { w.catchUp(t, p, work, underWay) }
				work := w.killed(t, reads*share/100, onDisk, c.runs[0])
				saved := kept(t, p, work)
				if spools, _ := filepath.Glob(filepath.Join(work, ".df11-convert", "spool-*")); len(spools) > 3 {
					t.Errorf("%d spools are open", len(spools))
				}
				w.ResetLog()
				if _, err := w.convert(t.Context(), t, work, onDisk, c.runs[0]); err != nil {
					t.Fatal(err)
				}
				if again := w.sourceBytes(); saved == 0 || again > once-saved {
					t.Errorf("killed at %d %%: %d bytes were read then, %d by an undisturbed run, with %d kept", share, again, once, saved)
				}
				for _, run := range c.runs[1:] {
					w.mustConvert(t, run)
				}
				sameWeights(t, w, want)
			}
		})
	}
}

// splitLayers makes a unit of every module of a layer, so that norms belong to no unit but to a file of their own.
var splitLayers = plan.PatternDict{
	{Regex: `lm_head|model\.embed_tokens`},
	{Regex: `model\.layers\.\d+\.self_attn`, Attrs: []string{"q_proj", "k_proj", "v_proj", "o_proj"}},
	{Regex: `model\.layers\.\d+\.mlp\.(gate_proj|up_proj|down_proj)`},
}

// TestKillReadsNoFinishedUnitAgain: a kill that loses the spools in memory costs the units that were open and none that were
// finished, although the norms beside their weights belong to a file that is open until the end.
func TestKillReadsNoFinishedUnitAgain(t *testing.T) {
	t.Parallel()
	world := func() *world {
		w := newWorld(t, severalTensors(hubtest.OrderModel))
		w.plan.PatternDict = splitLayers
		return w
	}
	base := world()
	base.mustConvert(t)
	once, reads := base.sourceBytes(), base.Count("GET", "/repos/*")
	w, p := world(), base.planned(t)
	w.beforeKill = func(work string) { w.catchUp(t, p, work, underWay) }
	work := w.killed(t, reads*8/10)
	saved := kept(t, p, work)
	w.ResetLog()
	if _, err := w.convert(t.Context(), t, work); err != nil {
		t.Fatal(err)
	}
	const norms = 7 * 2 * 128 // may be passed again behind an open unit
	if again := w.sourceBytes(); saved < once/2 || again > once-saved+norms {
		t.Errorf("%d bytes were read again, %d by an undisturbed run, with %d kept", again, once, saved)
	}
	sameFiles(t, w.target(), base.target())
}

// TestKillReadsNothingOfAnotherMachineAgain: the same for units that another machine has finished and this one has adopted.
func TestKillReadsNothingOfAnotherMachineAgain(t *testing.T) {
	t.Parallel()
	m := hubtest.NewLlama(5, hubtest.ModelOptions{Layers: 40, Hidden: 128, Intermediate: 512, Heads: 2, Vocab: 64, Extra: noPicture})
	w := newWorld(t, m)
	w.plan.PatternDict = splitLayers
	interrupted(t, w, t.TempDir(), func(stop func()) {
		w.Inject(hubtest.Fault{Method: "POST", Path: anyCommit, Nth: 3, Action: func(x *hubtest.Exchange) { stop(); hubtest.Error(503, "", "")(x) }})
	})
	w.ClearFaults()
	done := len(weightFiles(w.target()))
	work := w.killed(t, int(m.Size()/rangeBytes/3))
	w.ResetLog()
	if _, err := w.convert(t.Context(), t, work); err != nil {
		t.Fatal(err)
	}
	if again := w.sourceBytes(); done < 50 || again > m.Size()*7/10 {
		t.Errorf("%d bytes of %d were read again, with %d outputs of another machine", again, m.Size(), done)
	}
	checkPublished(t, w)
}

// TestStoppedSpoolIsTakenUp: the same for a run that is stopped in good order. What it has read and not yet written to a spool
// is lost.
func TestStoppedSpoolIsTakenUp(t *testing.T) {
	t.Parallel()
	base := newWorld(t, severalTensors(hubtest.OrderModel))
	base.mustConvert(t, onDisk)
	once, reads := base.sourceBytes(), base.Count("GET", "/repos/*")
	p := base.planned(t)
	w, work := newWorld(t, severalTensors(hubtest.OrderModel)), t.TempDir()
	w.change = append(w.change, onDisk)
	interrupted(t, w, work, func(stop func()) {
		w.Inject(hubtest.Fault{Host: hubtest.HostCDN, Method: "GET", Path: "/repos/*", Nth: reads * 8 / 10, Action: func(x *hubtest.Exchange) {
			w.catchUp(t, p, work, underWay)
			stop()
			x.Next(x.ResponseWriter)
		}})
	})
	saved := kept(t, p, work)
	w.ResetLog()
	if _, err := w.convert(t.Context(), t, work); err != nil {
		t.Fatal(err)
	}
	if again := w.sourceBytes(); saved < once*8/10-2*underWay || again > once-saved {
		t.Errorf("%d bytes were read again, %d by an undisturbed run, with %d kept", again, once, saved)
	}
	sameFiles(t, w.target(), base.target())
}

// TestCompleteSpoolIsTakenUp: a unit that was complete and could not be converted is converted without being read again,
// while the fetcher passes its bytes.
func TestCompleteSpoolIsTakenUp(t *testing.T) {
	t.Parallel()
	for name, c := range keepCases {
		t.Run(name, func(t *testing.T) {
			sampled(t, name == "part")
			want := reference(t, severalTensors(c.order))
			w, work := newWorld(t, severalTensors(c.order)), t.TempDir()
			_, err := w.convert(t.Context(), t, work, onDisk, c.runs[0], func(o *pipeline.Options) { o.GPU = brokenGPU{} })
			if !errors.Is(err, errStop) {
				t.Fatal(err)
			}
			for _, run := range c.runs {
				if _, err := w.convert(t.Context(), t, work, onDisk, run); err != nil {
					t.Fatal(err)
				}
			}
			sameWeights(t, w, want)
		})
	}
}

// brokenGPU is a second decoder that fails.
type brokenGPU struct{}

func (brokenGPU) Compare(context.Context, verify.Arrays, int64, io.ReaderAt, verify.CompareOptions) error {
	return errStop
}
func (brokenGPU) Describe() (string, string) { return "broken", "" }

// TestSpoiledSpool: of a kept spool nothing is believed but the tensors that the journal names, and these only if their bytes
// are what it says. The bytes of the result are the same as ever.
func TestSpoiledSpool(t *testing.T) {
	t.Parallel()
	base := newWorld(t, severalTensors(hubtest.OrderModel))
	base.mustConvert(t, onDisk)
	once, reads := base.sourceBytes(), base.Count("GET", "/repos/*")
	p := base.planned(t)
	const all, lastTensor, nothing = 1 << 40, underWay, 0
	for name, c := range map[string]struct {
		spoil func(t *testing.T, s keptSpool)
		lost  int64 // bytes that may be fetched again although the journal named them
	}{
		"a bit":          {func(t *testing.T, s keptSpool) { s.flip(t, s.named[0].At+77) }, all},
		"cut":            {func(t *testing.T, s keptSpool) { writeFile(t, s.data, readFile(t, s.data)[:s.named[0].At+1]) }, all},
		"no data":        {func(t *testing.T, s keptSpool) { remove(t, s.data) }, all},
		"no journal":     {func(t *testing.T, s keptSpool) { remove(t, s.journal) }, all},
		"another plan":   {func(t *testing.T, s keptSpool) { s.edit(t, `"plan":"`, `"plan":"0`) }, all},
		"another crc":    {func(t *testing.T, s keptSpool) { s.editTensor(t, func(x *ledger.Tensor) { x.CRC ^= 1 }) }, all},
		"another place":  {func(t *testing.T, s keptSpool) { s.editTensor(t, func(x *ledger.Tensor) { x.At += 2 }) }, all},
		"another output": {func(t *testing.T, s keptSpool) { s.editTensor(t, func(x *ledger.Tensor) { x.Output += "x" }) }, all},
		"twice":          {func(t *testing.T, s keptSpool) { s.nameTwice(t) }, all},
		"a wrong read":   {func(t *testing.T, s keptSpool) { s.readWrong(t) }, all},
		"torn":           {func(t *testing.T, s keptSpool) { s.tearJournal(t) }, lastTensor},
		"garbage":        {func(t *testing.T, s keptSpool) { s.fillUnnamed(t) }, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			sampled(t, name == "a bit" || name == "cut")
			w := newWorld(t, severalTensors(hubtest.OrderModel))
			work := w.killedInSpool(t, p, reads)
			saved := kept(t, p, work)
			c.spoil(t, largestSpool(t, p, work))
			w.ResetLog()
			if _, err := w.convert(t.Context(), t, work, onDisk); err != nil {
				t.Fatal(err)
			}
			lost := w.sourceBytes() - (once - saved)
			if lost > c.lost || c.lost == all && lost <= 0 {
				t.Errorf("%d bytes that the journal named were read again", lost)
			}
			sameFiles(t, w.target(), base.target())
			checkPublished(t, w)
		})
	}
}

// keptSpool is a spool that a killed run has left.
type keptSpool struct {
	journal, data string
	named         []ledger.Tensor // what the journal says of it
	output        *spans.Output
}

// largestSpool finds the spool of a work folder of which the journal names the most tensors; a zero one if it names none.
func largestSpool(t *testing.T, p *plan.Plan, work string) (s keptSpool) {
	t.Helper()
	l := readJournal(t, p, work)
	for _, o := range spans.Outputs(p) {
		if named := l.Tensors(o.Path); len(named) > len(s.named) {
			s = keptSpool{filepath.Join(work, journalFile), spool.KeptPath(filepath.Join(work, ".df11-convert"), o), named, o}
		}
	}
	return s
}

// flip changes a bit of the spool.
func (s keptSpool) flip(t *testing.T, at int64) {
	b := readFile(t, s.data)
	b[at] ^= 1
	writeFile(t, s.data, b)
}

// fillUnnamed writes garbage wherever the journal names no tensor.
func (s keptSpool) fillUnnamed(t *testing.T) {
	b := slices.Repeat([]byte{0xaa}, int(s.output.Size))
	good := readFile(t, s.data)
	for x := range s.output.Tensors() {
		if slices.ContainsFunc(s.named, func(h ledger.Tensor) bool { return h.At == x.At }) {
			copy(b[x.At:x.At+x.Length], good[x.At:])
		}
	}
	writeFile(t, s.data, b)
}

// tearJournal makes the last tensor the last line of the journal, and cuts it.
func (s keptSpool) tearJournal(t *testing.T) {
	lines := strings.SplitAfter(string(readFile(t, s.journal)), "\n")
	isTensor := func(line string) bool { return strings.HasPrefix(line, `{"tensor":`) }
	slices.Reverse(lines)
	i := slices.IndexFunc(lines, isTensor)
	last := lines[i]
	lines = slices.Delete(lines, i, i+1)
	slices.Reverse(lines)
	writeFile(t, s.journal, []byte(strings.Join(lines, "")+last[:len(last)-9]))
}

// nameTwice makes the journal name the spool's first tensor a second time.
func (s keptSpool) nameTwice(t *testing.T) {
	line, err := json.Marshal(map[string]ledger.Tensor{"tensor": s.named[0]})
	if err != nil {
		t.Fatal(err)
	}
	s.edit(t, string(line), string(line)+"\n"+string(line))
}

// editTensor changes what the journal says of the spool's first tensor.
func (s keptSpool) editTensor(t *testing.T, change func(*ledger.Tensor)) {
	line := func(x ledger.Tensor) string {
		b, err := json.Marshal(map[string]ledger.Tensor{"tensor": x})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	x := s.named[0]
	change(&x)
	s.edit(t, line(s.named[0]), line(x))
}

// readWrong makes the spool's first tensor one of which a bit was wrong when it was read.
func (s keptSpool) readWrong(t *testing.T) {
	s.flip(t, s.named[0].At)
	for x := range s.output.Tensors() {
		if x.At == s.named[0].At {
			b := readFile(t, s.data)[x.At : x.At+x.Length]
			s.editTensor(t, func(h *ledger.Tensor) { h.CRC = crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) })
		}
	}
}

// edit changes a place in the journal.
func (s keptSpool) edit(t *testing.T, old, changed string) {
	b := string(readFile(t, s.journal))
	if strings.Count(b, old) != 1 {
		t.Fatalf("the journal does not say %s once:\n%s", old, b)
	}
	writeFile(t, s.journal, []byte(strings.Replace(b, old, changed, 1)))
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestSpoolsOfAnotherCommit: spools of another commit of the source are deleted.
func TestSpoolsOfAnotherCommit(t *testing.T) {
	w := newWorld(t, mediumHead())
	work := w.killed(t, 340, onDisk)
	w.AddModel(sourceRepo, small())
	s := &failingSource{}
	s.n.Store(1)
	_, err := w.convert(t.Context(), t, work, onDisk, func(o *pipeline.Options) { s.Source, o.Source = o.Source, s })
	if !errors.Is(err, errSourceFails) {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(work, ".df11-convert", "spool-*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}

// TestKeptSpoolsBlockNothing: a kept spool of a disk with room for no other one is given up if an output that is read before it has
// to be made again. Else both would wait for ever.
func TestKeptSpoolsBlockNothing(t *testing.T) {
	t.Parallel()
	m := severalTensors(hubtest.OrderModel)
	base := newWorld(t, m)
	base.mustConvert(t, onDisk)
	w := newWorld(t, m)
	p, keep := w.planned(t), func(o *pipeline.Options) { o.OutDir, o.Push = o.WorkDir, nil }
	out := w.killedInSpool(t, p, base.Count("GET", "/repos/*"), keep)
	const lost = "model_layers_0.safetensors"
	if !readJournal(t, p, out).Done(lost) {
		t.Fatal("the first layer was not done")
	}
	remove(t, filepath.Join(out, lost))
	outputs := spans.Outputs(p)
	disk := budget.PeakSpool(spans.Segments(outputs, len(p.Source().Weights)), func(*spans.Output) bool { return true })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := w.convert(ctx, t, out, onDisk, keep, func(o *pipeline.Options) { o.Disk = disk }); err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs {
		if got := fmt.Sprintf("%x", sha256.Sum256(readFile(t, filepath.Join(out, o.Path)))); got != base.target()[o.Path].SHA256 {
			t.Errorf("%s differs", o.Path)
		}
	}
}
