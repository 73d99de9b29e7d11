// The tests of this package are written in a few words, which are all defined here or next to the
// first test that needs them:
//
//   - a world is a hub with one model: newWorld, convert, mustConvert, target, manifest
//   - a model is small, taller (one layer more), deep (many outputs), several (files), scattered
//     (units over many files), or mediumHead (large tensors)
//   - changes of a run's options are functions: inFolder, forced, inPart, finishing, onDisk
//   - reference is what an undisturbed run publishes, and calm what it does; sameFiles,
//     checkPublished, unfinished, foreign, and noGoroutines judge what a disturbed one leaves

package convert_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/forward"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/safetensors"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// The repos and the token of every test.
const (
	sourceRepo = "org/model"
	targetRepo = "me/model-DF11"
	anyCommit  = "/api/models/*/commit/*"
	testToken  = "hf_secret"
)

// rangeBytes is the size of a range in which a world's client reads source files.
const rangeBytes = 32 << 10

// patience bounds the wait for what is sure to come, however busy the machine is.
const patience = time.Minute

// world has a hub with one model, and what converts it.
type world struct {
	*hubtest.Server
	clock *hubtest.JumpClock
	// log counts the outputs that were finished, by path, over all runs.
	log *outputLog
	// era counts the runs that were stopped. Clients name theirs in the User-Agent.
	era, since int // since is the era of the last ResetLog

	plan   plan.Options
	hub    []func(*hub.Options)
	change []func(*convert.Options)
}

// Worlds are in memory, where clients reach the hub through its RoundTrip. One that listens is for
// a test to which the network matters.
var (
	inMemory  = hubtest.InMemory("https://hub.test", "https://storage.test")
	listening = hubtest.InMemory("", "")
)

// newWorld starts a hub with the model. A token in a wrong place fails the test.
func newWorld(t *testing.T, m *hubtest.Model, opts ...hubtest.Option) *world {
	t.Helper()
	labelGoroutines(t)
	w := &world{Server: hubtest.Start(t, append([]hubtest.Option{inMemory}, opts...)...), clock: hubtest.NewJumpClock(time.Now()), log: newOutputLog()}
	if m != nil {
		w.AddModel(sourceRepo, m)
	}
	return w
}

// ResetLog forgets all requests. sourceBytes then leaves out, too, what clients that were stopped
// have sent and the server sees only now: they have closed their connections, but the server still
// reads what was written to them.
func (w *world) ResetLog() {
	w.since = w.era
	w.Server.ResetLog()
}

// userAgent names an era, later ones after earlier ones.
func userAgent(era int) string { return fmt.Sprintf("test/%06d", era) }

// writable are the servers of hubtest that take results.
var writable = []string{"hub", "kohakuhub", "git"}

// onServers runs a test on each of them.
func onServers(t *testing.T, test func(t *testing.T, ways hubtest.Option)) {
	for _, server := range writable {
		t.Run(server, func(t *testing.T) { test(t, hubtest.WithWays(hubtest.Servers[server])) })
	}
}

// client makes a client of the hub; it fetches in small ranges, so that tiny models have many.
func (w *world) client(t *testing.T, change ...func(*hub.Options)) *hub.Client {
	t.Helper()
	opt := hub.Options{Connection: hub.Connection{Endpoint: w.URL, Token: testToken, TokenSource: "HF_TOKEN", Clock: w.clock, UserAgent: userAgent(w.era)}, RangeBytes: rangeBytes, BufferBytes: 8 * rangeBytes}
	if strings.HasPrefix(w.URL, "https:") { // in memory
		opt.HTTPTransport = w
	}
	for _, f := range append(slices.Clone(w.hub), change...) {
		f(&opt)
	}
	c, err := hub.New(opt)
	shared.Must(t, err)
	return c
}

// convert runs a whole conversion from the hub to the hub with nothing left of earlier ones in
// memory; work is the folder for what is on its way.
func (w *world) convert(ctx context.Context, t *testing.T, work string, change ...func(*convert.Options)) (*convert.Report, error) {
	t.Helper()
	ours := func(o *convert.Options) {
		push(o).Repo, o.WorkDir, o.Log = targetRepo, work, slog.New(w.log)
		o.CommitWait = time.Minute // tiny models too
	}
	return convertWith(ctx, t, w.client(t), sourceRepo, w.plan, slices.Concat([]func(*convert.Options){ours}, w.change, change)...)
}

// convertWith runs the conversion of a repo, with @revision behind it if that is not main, or of
// the folder with this absolute path. A change says which repo of the client's hub it's pushed to.
func convertWith(ctx context.Context, t *testing.T, c *hub.Client, source string, p plan.Options, change ...func(*convert.Options)) (*convert.Report, error) {
	t.Helper()
	opt := convert.Options{
		Push: &publish.Push{Hub: c}, WorkDir: filepath.Join(t.TempDir(), "work"),
		Memory: budget.ForConversion(0, 2), Means: forward.Means{Workers: 2}, Version: "test",
	}
	var err error
	if filepath.IsAbs(source) {
		opt.Source, opt.Model, opt.Plan = openLocal(t, source, p)
		push(&opt).Private = new(false) // these tests are about other things
	} else if opt.Source, opt.Model, opt.Plan, err = openModel(ctx, c, source, p); err != nil {
		return nil, err
	}
	for _, f := range change {
		f(&opt)
	}
	return converted(ctx, opt)
}

// push returns the Hub's target in the options of a conversion.
func push(o *convert.Options) *publish.Push { return o.Push.(*publish.Push) }

// converted opens the targets of a conversion and makes what they lack.
func converted(ctx context.Context, opt convert.Options) (*convert.Report, error) {
	run, err := convert.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	return run.Convert(ctx)
}

// openModel opens a repo, with @revision behind it if that is not main, and makes the plan of its
// conversion.
func openModel(ctx context.Context, c *hub.Client, repo string, opt plan.Options) (model.Source, *model.Model, *plan.Plan, error) {
	repo, revision, _ := strings.Cut(repo, "@")
	src, known, err := model.OpenHub(ctx, c, repo, revision, opt, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := plan.New(ctx, known.Listing, opt)
	return src, known, p, err
}

// pair opens the target and its original, and keeps pieces of the target in so many bytes.
func (w *world) pair(t *testing.T, pieces int64) back.Pair {
	t.Helper()
	c := w.client(t)
	src, known, p, err := openModel(t.Context(), c, sourceRepo, w.plan)
	shared.Must(t, err)
	d, err := model.OpenDF11Hub(t.Context(), c, targetRepo, "", 0, pieces)
	shared.Must(t, err)
	t.Cleanup(func() { d.Close() })
	return back.Pair{DF11: d, Source: src, Model: known, Plan: p}
}

// planned returns the plan of the hub's model.
func (w *world) planned(t *testing.T) *plan.Plan {
	t.Helper()
	_, _, p, err := openModel(t.Context(), w.client(t), sourceRepo, w.plan)
	shared.Must(t, err)
	return p
}

// mustConvert is convert into a folder of its own, which must be gone afterwards.
func (w *world) mustConvert(t *testing.T, change ...func(*convert.Options)) *convert.Report {
	t.Helper()
	work := filepath.Join(t.TempDir(), "work")
	r, err := w.convert(t.Context(), t, work, change...)
	shared.Must(t, err)
	if _, err := os.Stat(work); !os.IsNotExist(err) {
		t.Errorf("the work folder is still there: %v", err)
	}
	w.namesItsCommit(t, r)
	return r
}

// namesItsCommit fails the test if a finished result is not at the commit that the report names,
// with the manifest that it names.
func (w *world) namesItsCommit(t *testing.T, r *convert.Report) {
	t.Helper()
	if r.Target.Repo == "" || r.Target.Part != "" {
		return
	}
	b, err := w.ReadFile(r.Target.Repo, r.Target.Commit, names.Manifest)
	if err != nil {
		t.Fatalf("commit %q of %s: %v", r.Target.Commit, r.Target.Repo, err)
	}
	if sum := shared.Sum(b); sum != r.Target.ManifestSHA256 {
		t.Errorf("the manifest has sha256 %s, the report says %q", sum, r.Target.ManifestSHA256)
	}
}

// target returns the files of the target's main. Its manifest is changed as if all source files had
// been streamed: only that differs after a kill.
func (w *world) target() map[string]hubtest.File {
	files := w.Files(targetRepo, "main")
	if b, err := w.ReadFile(targetRepo, "main", names.Manifest); err == nil {
		files[names.Manifest] = hubtest.File{SHA256: shared.Sum(shared.AsStreamed(b))}
	}
	return files
}

// unfinished fails the test if a loader would take the target for a model.
func (w *world) unfinished(t *testing.T) {
	t.Helper()
	if _, ok := w.target()["config.json"]; ok {
		t.Error("the target has a config.json before it is complete")
	}
}

// manifest reads the target's manifest.
func (w *world) manifest(t *testing.T) *metadata.Manifest {
	t.Helper()
	b, err := w.ReadFile(targetRepo, "main", names.Manifest)
	shared.Must(t, err)
	m, err := metadata.ParseManifest(b, 0)
	shared.Must(t, err)
	return m
}

// outputLog is a log handler that remembers which outputs were finished.
type outputLog struct {
	logHook
	mu    sync.Mutex
	files []string
	hook  func(file string) // called after each, one at a time, with mu held
}

func newOutputLog() *outputLog {
	l := new(outputLog)
	l.logHook = func(r slog.Record) {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "file" && r.Message == "output finished" {
				l.add(a.Value.String())
			}
			return true
		})
	}
	return l
}

func (l *outputLog) add(file string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, file)
	if l.hook != nil {
		l.hook(file)
	}
}

// take returns the outputs since the last call.
func (l *outputLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	files := l.files
	l.files = nil
	return files
}

// small is a model of two layers in several files, with a unit that lies in more than one of them.
func small() *hubtest.Model { return seeded(7) }

// retrained is small with other weights under the same headers.
func retrained() *hubtest.Model { return seeded(8) }

// seeded is small with the weights of a seed.
func seeded(seed uint64) *hubtest.Model {
	return hubtest.NewLlama(seed, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 3, ShardBytes: 30_000, Extra: hubtest.OwnPicture})
}

// reference returns the target of an undisturbed conversion of a model.
func reference(t *testing.T, m *hubtest.Model) map[string]hubtest.File {
	t.Helper()
	w := newWorld(t, m)
	w.mustConvert(t)
	for _, f := range w.manifest(t).Source.Files {
		if f.Integrity != metadata.Streamed {
			t.Errorf("%s of an undisturbed run: %s", f.Path, f.Integrity)
		}
	}
	return w.target()
}

// sameFiles compares two revisions file by file.
func sameFiles(t *testing.T, got, want map[string]hubtest.File) {
	t.Helper()
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[p]; !ok {
			t.Errorf("%s is missing", p)
		} else if g != want[p] {
			t.Errorf("%s differs: %+v, want %+v", p, g, want[p])
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s is one file too many", p)
		}
	}
}

// writeModel writes a model into a new folder and returns its path.
func writeModel(t *testing.T, m *hubtest.Model) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	shared.Must(t, m.Write(dir))
	return dir
}

// labelGoroutines marks every goroutine that a test starts from now on, so that noGoroutines finds
// those of this test.
func labelGoroutines(t *testing.T) {
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("test", topTest(t))))
}

// topTest returns the name of the test without its subtest. Subtests share a label, and never run
// at once.
func topTest(t *testing.T) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// noGoroutines fails the test if it still runs something of the module. What was canceled gets a
// moment to end.
func noGoroutines(t *testing.T) {
	t.Helper()
	var left []string
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(5 * time.Millisecond) {
		if left = ourGoroutines(t); len(left) == 0 {
			return
		}
	}
	t.Errorf("%d stacks are left, the first is\n%s", len(left), left[0])
}

// ourGoroutines lists the stacks of the test that hold a frame of the module outside tests and the
// test hub.
func ourGoroutines(t *testing.T) (found []string) {
	t.Helper()
	var profile bytes.Buffer
	shared.Must(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	labeled := 0
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, fmt.Sprintf("%q:%q", "test", topTest(t))) {
			continue
		}
		labeled++
		if slices.ContainsFunc(strings.Split(stack, "\n"), isOurs) {
			found = append(found, stack)
		}
	}
	if labeled == 0 {
		t.Fatal("not even the test's own goroutine has its label")
	}
	return found
}

// isOurs reports whether a line of a stack is a frame of the module outside tests and the test hub.
func isOurs(frame string) bool {
	const module = "github.com/df11-convert/df11-convert/"
	return strings.Contains(frame, module) && !strings.Contains(frame, module+"internal/convert_test.") &&
		!strings.Contains(frame, module+"internal/hubtest.")
}

// openFiles counts the process's open files below dir, deleted ones included. Only Linux can report
// it.
func openFiles(dir string) (n int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

// tensors returns the tensors of a safetensors file in its order. Their data is the file's.
func tensors(t *testing.T, file []byte) (list []shared.Tensor) {
	t.Helper()
	h, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
	shared.Must(t, err)
	for _, x := range h.Tensors {
		data := file[h.DataStart()+x.Begin : h.DataStart()+x.End]
		list = append(list, shared.Tensor{Name: x.Name, DType: string(x.DType), Shape: x.Shape, Data: data})
	}
	return list
}

// tensor returns the bytes of one tensor of a safetensors file.
func tensor(t *testing.T, file []byte, name string) []byte {
	t.Helper()
	for _, x := range tensors(t, file) {
		if x.Name == name {
			return x.Data
		}
	}
	t.Fatalf("no tensor %s", name)
	return nil
}

func TestMain(m *testing.M) { os.Exit(shared.Quick(m).Run()) }
