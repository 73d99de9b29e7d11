package convert_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestEveryConversionSurvives: whatever happens to the runs of a conversion, whatever server it is,
// and on whatever machine the next one goes on, the last one ends with the same bytes as an
// undisturbed run. It makes no output again that is done, and fetches no byte that is there, unless
// a byte was wrong on its way.
func TestEveryConversionSurvives(t *testing.T) {
	t.Parallel()
	undisturbed := map[string]*calm{}
	for _, seed := range shared.Seeds(t, 24, 600) {
		t.Run(fmt.Sprintf("DF11_SEED=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			i, server := rnd.IntN(len(ordealModels)), writable[rnd.IntN(len(writable))]
			begin := func() *world { return ordealModels[i].world(t, hubtest.WithWays(hubtest.Servers[server])) }
			key := fmt.Sprint(i, server)
			if undisturbed[key] == nil {
				undisturbed[key] = newCalm(t, begin())
			}
			o := newOrdeal(rnd, undisturbed[key], begin(), t.TempDir())
			for range 1 + rnd.IntN(3) {
				x := ordeals[rnd.IntN(len(ordeals))]
				if o.suffer(t, x.name, x.meet) {
					o.check(t)
					return
				}
			}
			o.finish(t)
			o.check(t)
		})
	}
}

// ordealModels have units in several files, files of several units, many open spools, more outputs
// than one commit brings, an output that is open until the end, twice the bytes that a spool holds,
// or tensors outside the model in its one file.
var ordealModels = []ordealModel{
	{model: small}, {model: mediumHead}, {model: scattered}, {model: deep}, {model: several},
	{model: several, opt: plan.Options{PatternDict: splitLayers}}, {model: several, opt: plan.Options{ExactF32: true}},
	{model: several, opt: plan.Options{PatternDict: splitLayers, Layout: catalog.ComfyUI}},
}

type ordealModel struct {
	model func() *hubtest.Model
	opt   plan.Options
}

func (m ordealModel) world(t *testing.T, opts ...hubtest.Option) *world {
	if m.opt.ExactF32 {
		return f32World(t, m.model(), nil, opts...)
	}
	w := newWorld(t, m.model(), opts...)
	if w.plan = m.opt; m.opt.Layout == catalog.ComfyUI {
		w.AddRepo(sourceRepo, checkpoint(t, m.model().Files()))
	}
	return w
}

// checkpoint makes one file of a model's files, with tensors of other models before and behind.
func checkpoint(t *testing.T, files map[string][]byte) map[string][]byte {
	t.Helper()
	all := []shared.Tensor{{Name: "a_vae", DType: "BF16", Shape: []int64{30_000}, Data: bytes.Repeat([]byte{1, 2, 3}, 20_000)}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".safetensors") {
			continue
		}
		for _, x := range tensors(t, files[name]) {
			x.Name = "model.diffusion_model." + x.Name
			all = append(all, x)
		}
	}
	all = append(all, shared.Tensor{Name: "z_text", DType: "BF16", Shape: []int64{60_000}, Data: bytes.Repeat([]byte{1, 2, 3}, 40_000)})
	return map[string][]byte{"all-in-one.safetensors": shared.Safetensors(all)}
}

// scattered is a model of 7 MB whose units each lie in many files, so that many spools are open
// at once.
func scattered() *hubtest.Model {
	return hubtest.NewLlama(19, hubtest.ModelOptions{
		Hidden: 128, Vocab: 6000, Layers: 6, ShardBytes: 1_500_000, Order: hubtest.OrderScattered, Extra: hubtest.OwnPicture,
	})
}

// deep is a model with more outputs than fit one batch.
func deep() *hubtest.Model {
	return hubtest.NewLlama(11, hubtest.ModelOptions{Layers: 70, Hidden: 16, Heads: 2, Vocab: 64, ShardBytes: 60_000, Extra: hubtest.OwnPicture})
}

// calm is what an undisturbed run of a model does.
type calm struct {
	target          map[string]hubtest.File
	plan            *plan.Plan
	read            int64 // bytes of the source
	reads, requests int
}

func newCalm(t *testing.T, w *world) *calm {
	w.mustConvert(t)
	c := &calm{target: w.target(), read: w.sourceBytes(), reads: w.Count("GET", "/repos/*"), requests: len(w.Requests())}
	c.plan = w.planned(t)
	return c
}

// ordeal is a conversion whose runs are disturbed.
type ordeal struct {
	*world
	rnd    *rand.Rand
	calm   *calm
	work   string // folder that the next run goes on in
	parts  bool   // it is converted as a part, then finished
	inHere bool   // the result stays in the folder, and is published nowhere
	wrong  bool   // a byte was wrong on its way
}

func newOrdeal(rnd *rand.Rand, c *calm, w *world, work string) *ordeal {
	o := &ordeal{world: w, rnd: rnd, calm: c, work: work}
	memory, wait := []int64{0, 0, 1 << 20, 64 << 20}[rnd.IntN(4)], []time.Duration{0, 1}[rnd.IntN(2)]
	o.inHere = rnd.IntN(4) == 0
	o.parts = !o.inHere && rnd.IntN(4) == 0 && w.plan.Layout != catalog.ComfyUI
	o.change = append(o.change, func(opt *convert.Options) {
		opt.Memory.Spools, opt.CommitWait, opt.Workers = memory, wait, 1+rnd.IntN(3)
		switch {
		case o.inHere:
			opt.OutDir, opt.Push = opt.WorkDir, nil
		case o.parts:
			inPart(opt)
		}
	})
	return o
}

// ordeals are what can happen to a run. Each returns the error that the run ended with, if it did.
var ordeals = []struct {
	name string
	meet func(o *ordeal, t *testing.T) error
}{
	{"killed", (*ordeal).kill},
	{"killed, and a bit flips on the disk", func(o *ordeal, t *testing.T) error {
		dead, err := o.killedIn(t, o.work, 1+o.rnd.IntN(o.calm.reads))
		if err != nil {
			o.wrong, o.work = true, dead
			o.flip(t)
		}
		return err
	}},
	{"killed during an upload", func(o *ordeal, t *testing.T) error {
		o.Inject(hubtest.Fault{Method: "PUT", Action: func(x *hubtest.Exchange) {
			time.Sleep(300 * time.Millisecond) // long enough to be there when the kill comes
			x.Next(x.ResponseWriter)
		}})
		return o.kill(t)
	}},
	{"killed over a wrong byte, then a byte is wrong and answers to commits are lost", func(o *ordeal, t *testing.T) error {
		o.wrong = true
		o.Inject(hubtest.Fault{Name: "corrupt", Nth: 1 + o.rnd.IntN(o.calm.reads)})
		if err := o.kill(t); err == nil {
			return nil
		}
		o.Inject(hubtest.Fault{Name: "corrupt", Nth: 1 + o.rnd.IntN(o.calm.reads)})
		o.Inject(hubtest.Fault{Name: "commit-500-after", Times: hubtest.Always})
		_, err := o.convert(t.Context(), t, o.work)
		return err
	}},
	{"stopped at a request", func(o *ordeal, t *testing.T) error {
		return o.stopped(t, o.work, func(stop func()) {
			o.Inject(hubtest.Fault{Nth: o.request(), Action: func(x *hubtest.Exchange) { stop(); x.Next(x.ResponseWriter) }})
		})
	}},
	{"stopped at an output", func(o *ordeal, t *testing.T) error {
		n := o.rnd.IntN(len(o.calm.plan.OutputFiles))
		return o.stopped(t, o.work, func(stop func()) {
			o.log.hook = func(string) {
				if n--; n < 0 {
					stop()
				}
			}
		})
	}},
	{"refused a request", func(o *ordeal, t *testing.T) error {
		o.Inject(hubtest.Fault{Nth: o.request(), Action: hubtest.Error(401, "", "Invalid credentials in Authorization header")})
		_, err := o.convert(t.Context(), t, o.work)
		if e := (*hub.Error)(nil); err != nil && !errors.As(err, &e) {
			t.Errorf("refused: %v", err)
		}
		return err
	}},
	{"spoiled answers", func(o *ordeal, t *testing.T) error {
		o.wrong = true
		for _, i := range o.rnd.Perm(len(passing))[:12] {
			o.Inject(hubtest.Fault{Name: passing[i], Times: hubtest.Always, Probability: 0.01 + 0.05*o.rnd.Float64(), Seed: o.rnd.Uint64()})
		}
		_, err := o.convert(t.Context(), t, o.work)
		noSecret(t, err)
		return err
	}},
}

// passing are the faults that a conversion may meet at any time and must survive, though a run may
// give up.
var passing = []string{
	"429-ratelimit", "429-retry-after", "429-bare", "500", "502", "503", "504", "hub-reset",
	"cdn-500", "cdn-503", "reset", "cut", "short", "chunked", "corrupt", "etag-changed", "ignore-range", "wrong-range", "gzip", "expired",
	"batch-500", "put-500", "put-503", "put-timeout", "put-expired", "put-reset", "put-reset-after", "put-wrong-etag",
	"complete-500", "complete-after", "verify-500",
	"commit-412", "commit-409", "commit-500", "commit-500-after", "commit-504-after", "commit-reset-after",
}

// suffer has one run meet an ordeal, and reports whether the conversion was done before. What the
// run leaves goes on, or, where the result is published, sometimes only what is in the repo.
func (o *ordeal) suffer(t *testing.T, name string, meet func(*ordeal, *testing.T) error) (done bool) {
	t.Helper()
	err := meet(o, t)
	t.Logf("%s: %v", name, err)
	if taken := (*publish.TakenError)(nil); errors.As(err, &taken) {
		t.Error("a run takes its own work for that of another one")
	}
	o.ended(t, o.work)
	if err == nil {
		return !o.parts
	}
	if !o.inHere {
		// the run did not live to hear of its last commit
		if target := o.target(); target["config.json"] != (hubtest.File{}) {
			sameFiles(t, target, o.calm.target)
		}
		if o.rnd.IntN(3) == 0 {
			o.work = t.TempDir()
		}
	}
	return false
}

// kill runs the conversion up to a random read. The next run goes on with what a kill at that
// moment leaves, or what an end in good order does.
func (o *ordeal) kill(t *testing.T) error {
	dead, err := o.killedIn(t, o.work, 1+o.rnd.IntN(o.calm.reads))
	if err != nil && o.rnd.IntN(3) > 0 {
		o.work = dead
	}
	return err
}

// flip changes a bit of a spool, or of an output that is to be published. A spool that stays in a
// folder would be taken for somebody else's then.
func (o *ordeal) flip(t *testing.T) {
	var files []string
	for _, pattern := range []string{".df11-convert/files/*.safetensors", ".df11-convert/spool-*"} {
		found, _ := filepath.Glob(filepath.Join(o.work, pattern))
		files = append(files, found...)
	}
	if len(files) == 0 {
		return
	}
	name := files[o.rnd.IntN(len(files))]
	if b := shared.Read(t, name); len(b) > 0 {
		b[o.rnd.IntN(len(b))] ^= 1 << o.rnd.IntN(8)
		shared.Write(t, name, b)
	}
}

func (o *ordeal) request() int { return 1 + o.rnd.IntN(o.calm.requests) }

// finish runs the conversion to its end, and holds it to what was there.
func (o *ordeal) finish(t *testing.T) {
	t.Helper()
	saved, done := o.there(t)
	o.log.take()
	o.ResetLog()
	if _, err := o.convert(t.Context(), t, o.work); err != nil {
		t.Fatal(err)
	}
	if again := both(o.log.take(), done); len(again) > 0 && !o.wrong {
		t.Errorf("%v are made again", again)
	}
	if read := o.sourceBytes(); read > o.calm.read-saved && !o.wrong {
		t.Errorf("%d bytes are read, %d by an undisturbed run, with %d there", read, o.calm.read, saved)
	}
	most := 2*o.calm.requests + 100
	if o.wrong {
		// what is read back is found to be wrong, made again, and read back again
		most += o.calm.requests
	}
	if n := len(o.Requests()); n > most {
		t.Errorf("%d requests, %d by an undisturbed run", n, o.calm.requests)
	}
}

// there counts the source bytes that the next run has something of, and names the outputs that are
// done: in the folder, or in the repo.
func (o *ordeal) there(t *testing.T) (saved int64, done []string) {
	t.Helper()
	p := o.calm.plan
	local, repo := readJournal(t, p, o.work), ledger.New(p.Digest(), false)
	if journal, err := o.ReadFile(targetRepo, "main", ".df11/part-1-of-1.json"); err == nil {
		repo.Read(ledger.ReadJournal(journal))
	}
	for _, x := range shared.Got(spans.Outputs(p))(t) {
		if local.Done(x.Path) || repo.Done(x.Path) {
			done = append(done, x.Path)
			if !local.Done(x.Path) {
				saved += x.Size
			}
		}
	}
	return saved + kept(t, p, o.work), done
}

// check compares the result with that of an undisturbed run.
func (o *ordeal) check(t *testing.T) {
	t.Helper()
	if o.parts {
		o.parts = false
		o.mustConvert(t, finishing)
	}
	if o.inHere {
		for _, x := range o.calm.plan.OutputFiles {
			if got := shared.Sum(shared.Read(t, filepath.Join(o.work, x.Path))); got != o.calm.target[x.Path].SHA256 {
				t.Errorf("%s differs", x.Path)
			}
		}
		return
	}
	sameFiles(t, o.target(), o.calm.target)
	if o.plan.Layout != catalog.ComfyUI { // which has no config.json
		checkPublished(t, o.world)
	}
}
