package pipeline_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
	"github.com/df11-convert/df11-convert/pipeline"
)

// partsModel has units that span shards.
var partsModel = hubtest.ModelOptions{Layers: 5, Hidden: 96, Vocab: 700, ShardBytes: 150_000}

// pushFrom converts a model of the hub to a target on the same hub.
func pushFrom(t *testing.T, srv *hubtest.Server, source, repo string, change func(*pipeline.Options)) (*pipeline.Report, error) {
	t.Helper()
	c, err := hub.New(hub.Options{Endpoint: srv.URL, Token: "hf_test"})
	if err != nil {
		t.Fatal(err)
	}
	src, known, p, err := openModel(t.Context(), c, source, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := pipeline.Options{
		Source: src, Model: known, Plan: p, WorkDir: t.TempDir(), Memory: budget.Memory{Workers: 2}, Version: "test",
		Push: &target.Push{Hub: c, Repo: repo},
	}
	if change != nil {
		change(&o)
	}
	return pipeline.Run(t.Context(), o)
}

// everything is what a repo holds, the card and the manifest included. Only the word that says how a source file was
// checked is the same for all ways of doing it.
func everything(t *testing.T, srv *hubtest.Server, repo string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for p, f := range srv.Files(repo, "main") {
		m[p] = f.SHA256 + f.BlobID
	}
	b, err := srv.ReadFile(repo, "main", "df11-manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	m["df11-manifest.json"] = strings.ReplaceAll(string(b), `"integrity": "proof"`, `"integrity": "streamed"`)
	return m
}

// partsHub is a hub of its own with the model as a/llama.
func partsHub(t *testing.T, m hubtest.ModelOptions) *hubtest.Server {
	t.Helper()
	srv := hubtest.Start(t)
	srv.AddModel("a/llama", hubtest.NewLlama(7, m))
	return srv
}

// oneRun is everything that a single run makes of the model in a/out.
func oneRun(t *testing.T, m hubtest.ModelOptions) map[string]string {
	t.Helper()
	srv := partsHub(t, m)
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	return everything(t, srv, "a/out")
}

// sameRepo compares what two repos hold, file by file.
func sameRepo(t *testing.T, got, want map[string]string) {
	t.Helper()
	for p := range want {
		if got[p] != want[p] {
			t.Errorf("%s differs or is missing:\n%.2000s\n%.2000s", p, got[p], want[p])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
}

// contents is what a repo holds, but for the card, which names the repo, and the manifest, which lists the card.
func contents(srv *hubtest.Server, repo string) map[string]string {
	m := map[string]string{}
	for p, f := range srv.Files(repo, "main") {
		if p != "README.md" && p != "df11-manifest.json" {
			m[p] = f.SHA256 + f.BlobID
		}
	}
	return m
}

// TestPartsGiveTheSameRepo: two parts and a finish give every byte that one run gives, but for one word: the manifest says
// that the source files were proved, not streamed.
func TestPartsGiveTheSameRepo(t *testing.T) {
	t.Parallel()
	want, srv := oneRun(t, partsModel), partsHub(t, partsModel)
	for i := 1; i <= 2; i++ {
		_, err := pushFrom(t, srv, "a/llama", "a/out", func(o *pipeline.Options) { o.Part = spans.Part{I: i, N: 2} })
		if err != nil {
			t.Fatalf("part %d: %v", i, err)
		}
		if _, there := srv.Files("a/out", "main")["config.json"]; there {
			t.Fatal("config.json is there before the finish")
		}
	}
	if _, err := pushFrom(t, srv, "a/llama", "a/out", func(o *pipeline.Options) { o.Finish = true }); err != nil {
		t.Fatalf("finish: %v", err)
	}
	sameRepo(t, everything(t, srv, "a/out"), want)
	m, err := srv.ReadFile("a/out", "main", "df11-manifest.json")
	if err != nil || !strings.Contains(string(m), `"integrity": "proof"`) || strings.Contains(string(m), `"streamed"`) || strings.Contains(string(m), `"unchecked"`) {
		t.Errorf("manifest does not say that the files were proved (%v)", err)
	}
}

// TestNoMorePartsThanUnits: the name of a journal in the target cannot ask for memory for millions of parts, nor can an option.
func TestNoMorePartsThanUnits(t *testing.T) {
	w := newWorld(t, small())
	w.AddRepo(targetRepo, map[string][]byte{fmt.Sprintf(".df11/part-1-of-%d.json", spans.MaxParts+1): []byte("{}")})
	_, finish := w.convert(t.Context(), t, t.TempDir(), finishing)
	_, part := w.convert(t.Context(), t, t.TempDir(), func(o *pipeline.Options) { o.Part = spans.Part{I: 1, N: spans.MaxParts + 1} })
	for _, err := range []error{finish, part} {
		if err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("got %v", err)
		}
	}
}

// TestPartsOfALocalSource: a folder, too, can be converted in parts. Nobody has published the sums of its files: the run
// that finishes reads them.
func TestPartsOfALocalSource(t *testing.T) {
	t.Parallel()
	for name, widen := range map[string]bool{"bf16": false, "exact f32": true} {
		t.Run(name, func(t *testing.T) {
			dir, opt := writeModel(t, hubtest.NewLlama(7, partsModel)), plan.Options{ExactF32: widen}
			if widen {
				widenFiles(t, dir)
			}
			one, two := hubtest.Start(t), hubtest.Start(t)
			pushLocal(t, one, dir, opt, nil)
			localParts(t, two, dir, opt)
			pushLocal(t, two, dir, opt, func(o *pipeline.Options) { o.Finish = true })
			sameRepo(t, everything(t, two, "me/out"), everything(t, one, "me/out"))
		})
	}
}

// TestPartsOfTwoFolders: the run that finishes has another weight in its folder than the machines that made the parts. It
// makes the outputs of that file again: the result is that of its own folder.
func TestPartsOfTwoFolders(t *testing.T) {
	t.Parallel()
	dir := writeModel(t, hubtest.NewLlama(7, partsModel))
	other := filepath.Join(t.TempDir(), filepath.Base(dir))
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(other, "model-00002-of-00012.safetensors")
	b := readFile(t, name)
	b[len(b)/4*2] ^= 1
	writeFile(t, name, b)
	one, two := hubtest.Start(t), hubtest.Start(t)
	pushLocal(t, one, other, plan.Options{}, nil)
	localParts(t, two, dir, plan.Options{})
	before := two.Files("me/out", "main")
	pushLocal(t, two, other, plan.Options{}, func(o *pipeline.Options) { o.Finish = true })
	sameRepo(t, everything(t, two, "me/out"), everything(t, one, "me/out"))
	for p, f := range two.Files("me/out", "main") {
		if old, ok := before[p]; ok && old != f {
			return
		}
	}
	t.Error("the weight is in no output that a part has made")
}

// localParts makes both parts of a folder.
func localParts(t *testing.T, srv *hubtest.Server, dir string, opt plan.Options) {
	t.Helper()
	for i := 1; i <= 2; i++ {
		pushLocal(t, srv, dir, opt, func(o *pipeline.Options) { o.Part = spans.Part{I: i, N: 2} })
	}
}

// pushLocal converts a folder to me/out.
func pushLocal(t *testing.T, srv *hubtest.Server, dir string, opt plan.Options, change func(*pipeline.Options)) {
	t.Helper()
	c, err := hub.New(hub.Options{Endpoint: srv.URL, Token: "hf_test"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = convertLocal(t, dir, "", opt, func(o *pipeline.Options) {
		o.WorkDir, o.Push = filepath.Join(t.TempDir(), "work"), &target.Push{Hub: c, Repo: "me/out"}
		if change != nil {
			change(o)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// widenFiles stores the BF16 tensors of a folder as F32.
func widenFiles(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		writeFile(t, name, widen(t, readFile(t, name), nil))
	}
}

// TestFinishWantsAllParts: with a part missing, finish says which one; parts of different splits don't go together.
func TestFinishWantsAllParts(t *testing.T) {
	srv := hubtest.Start(t)
	srv.AddModel("a/llama", hubtest.NewLlama(7, partsModel))
	if _, err := pushFrom(t, srv, "a/llama", "a/two", func(o *pipeline.Options) { o.Part = spans.Part{I: 2, N: 3} }); err != nil {
		t.Fatal(err)
	}
	_, err := pushFrom(t, srv, "a/llama", "a/two", func(o *pipeline.Options) { o.Finish = true })
	missing := (*pipeline.PartsError)(nil)
	if !errors.As(err, &missing) || len(missing.Missing[1]) == 0 || len(missing.Missing[3]) == 0 || len(missing.Missing[2]) != 0 {
		t.Fatalf("got %v, want parts 1 and 3 missing", err)
	}
	if _, err := pushFrom(t, srv, "a/llama", "a/two", func(o *pipeline.Options) { o.Part = spans.Part{I: 1, N: 2} }); err != nil {
		t.Fatal(err)
	}
	_, err = pushFrom(t, srv, "a/llama", "a/two", func(o *pipeline.Options) { o.Finish = true })
	if err == nil || !strings.Contains(err.Error(), "different splits") {
		t.Errorf("parts of 2 and of 3: %v", err)
	}
}

// TestFinishedRepoIsLeftAlone: a second run of the same plan makes no commit.
func TestFinishedRepoIsLeftAlone(t *testing.T) {
	srv := hubtest.Start(t)
	srv.AddModel("a/llama", hubtest.NewLlama(7, partsModel))
	for range 2 {
		if _, err := pushFrom(t, srv, "a/llama", "a/one", nil); err != nil {
			t.Fatal(err)
		}
	}
	before := len(srv.Commits("a/one", "main"))
	if _, err := pushFrom(t, srv, "a/llama", "a/one", nil); err != nil {
		t.Fatal(err)
	}
	if after := len(srv.Commits("a/one", "main")); after != before {
		t.Errorf("%d commits, before %d", after, before)
	}
}

// TestRefreshIsOneCommit: when the source has a new commit, main of the finished target changes in one commit, which also
// deletes what is stale; the branch that held the work is gone.
func TestRefreshIsOneCommit(t *testing.T) {
	t.Parallel()
	srv := hubtest.Start(t)
	srv.AddModel("a/llama", hubtest.NewLlama(7, partsModel))
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	before := len(srv.Commits("a/out", "main"))
	smaller := partsModel
	smaller.Layers = 3
	recommit(srv, "a/llama", hubtest.NewLlama(8, smaller))
	if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	if after := len(srv.Commits("a/out", "main")); after != before+1 {
		t.Errorf("main moved by %d commits, want 1", after-before)
	}
	if _, stale := srv.Files("a/out", "main")["model_layers_4.safetensors"]; stale {
		t.Error("a stale unit file is left")
	}
	if refs := srv.Refs("a/out"); len(refs) != 1 {
		t.Errorf("refs: %v", refs)
	}
	fresh := hubtest.Start(t)
	fresh.AddModel("a/llama", hubtest.NewLlama(7, partsModel))
	recommit(fresh, "a/llama", hubtest.NewLlama(8, smaller))
	if _, err := pushFrom(t, fresh, "a/llama", "a/out", nil); err != nil {
		t.Fatal(err)
	}
	sameRepo(t, everything(t, srv, "a/out"), everything(t, fresh, "a/out"))
}

// TestSmallDiskIsToldWhatItNeeds: a disk on which the spools of files that are streamed do not fit is refused with the size that is
// needed. With that size, or with spools in memory, the repo is the same as ever.
func TestSmallDiskIsToldWhatItNeeds(t *testing.T) {
	t.Parallel()
	scattered := partsModel
	scattered.Order = hubtest.OrderScattered
	want, srv := oneRun(t, scattered), partsHub(t, scattered)
	small := func(disk, memory int64) func(*pipeline.Options) {
		return func(o *pipeline.Options) { o.Disk, o.Memory.Spools = disk, memory }
	}
	tooSmall := (*budget.DiskError)(nil)
	if _, err := pushFrom(t, srv, "a/llama", "a/out", small(2_200_000, -1)); !errors.As(err, &tooSmall) {
		t.Fatalf("2.2 MB: %v", err)
	}
	for disk, memory := range map[int64]int64{tooSmall.Need: -1, 2_200_000: 0} {
		srv := partsHub(t, scattered)
		if _, err := pushFrom(t, srv, "a/llama", "a/out", small(disk, memory)); err != nil {
			t.Fatal(err)
		}
		sameRepo(t, everything(t, srv, "a/out"), want)
	}
}

// TestATooSmallDiskChangesNothingOnTheHub: a disk that can't hold one unit is refused before a repo is created for it, or
// anything is changed in one that is there. What is published already needs no disk.
func TestATooSmallDiskChangesNothingOnTheHub(t *testing.T) {
	t.Parallel()
	srv := partsHub(t, partsModel)
	tiny := func(o *pipeline.Options) { o.Disk = 100_000 }
	srv.AddRepo("a/there", map[string][]byte{"notes.txt": []byte("mine")})
	for _, repo := range []string{"a/none", "a/there"} {
		srv.ResetLog()
		if _, err := pushFrom(t, srv, "a/llama", repo, tiny); !errors.As(err, new(*budget.DiskError)) {
			t.Errorf("%s: %v", repo, err)
		}
		if n := srv.Count("POST", "/api/repos/*") + srv.Count("POST", anyCommit) + srv.Count("PUT", "*"); n > 0 {
			t.Errorf("%s: the Hub was changed %d times", repo, n)
		}
	}
	for _, change := range []func(*pipeline.Options){func(*pipeline.Options) {}, tiny} {
		if _, err := pushFrom(t, srv, "a/llama", "a/out", change); err != nil {
			t.Error(err)
		}
	}
}

// TestCopiesInsideTheHub: large files that are carried over are copied by the hub itself, where it offers that, and are
// fetched and uploaded where it does not.
func TestCopiesInsideTheHub(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]hubtest.Option{{hubtest.WithXetHashes()}, nil} {
		srv := hubtest.Start(t, opts...)
		known := partsModel
		known.Extra = map[string][]byte{"tokenizer.model": []byte(strings.Repeat("\x00large", 2<<20))}
		srv.AddModel("a/llama", hubtest.NewLlama(7, known))
		srv.ResetLog()
		if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil {
			t.Fatal(err)
		}
		from, to := srv.Files("a/llama", "main")["tokenizer.model"], srv.Files("a/out", "main")["tokenizer.model"]
		if from.SHA256 == "" || from != to {
			t.Errorf("the copied file is not the source's: %+v %+v", from, to)
		}
		head := srv.Head("a/out", "main")
		if _, err := pushFrom(t, srv, "a/llama", "a/out", nil); err != nil || srv.Head("a/out", "main") != head {
			t.Errorf("a run with nothing to do made a commit (%v)", err)
		}
		if fetched := srv.Count("", "/a/llama/resolve/*/tokenizer.model") > 0; fetched != (opts == nil) {
			t.Errorf("hub offers copies: %v, file was fetched: %v", opts != nil, fetched)
		}
	}
}

// TestUploadedFilesAreNotMadeAgain: when a run ends between upload and commit, the next one on the same disk commits what
// the target's store has; and if the store has lost it, the files are made again.
func TestUploadedFilesAreNotMadeAgain(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		srv := hubtest.Start(t)
		srv.AddModel("a/llama", hubtest.NewLlama(7, partsModel))
		dir := t.TempDir()
		work := func(o *pipeline.Options) { o.WorkDir = dir }
		srv.Inject(hubtest.Fault{Name: "commit-quota", Times: hubtest.Always})
		if _, err := pushFrom(t, srv, "a/llama", "a/out", work); err == nil {
			t.Fatal("a commit over quota went through")
		}
		srv.ClearFaults()
		srv.ResetLog()
		if lost {
			srv.RemoveRepo("a/out")
		}
		r, err := pushFrom(t, srv, "a/llama", "a/out", work)
		if err != nil {
			t.Fatal(err)
		}
		if sent := srv.Count("PUT", "*") > 1; sent != lost || (r.Made == r.Files) != lost { // the card's picture is always sent
			t.Errorf("lost %v: files were sent again: %v, %d of %d were made", lost, sent, r.Made, r.Files)
		}
		if _, err := pushFrom(t, srv, "a/llama", "a/fresh", nil); err != nil {
			t.Fatal(err)
		}
		if got, want := contents(srv, "a/out"), contents(srv, "a/fresh"); !maps.Equal(got, want) {
			t.Errorf("lost %v: repos differ:\n%v\n%v", lost, got, want)
		}
	}
}
