package convert_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hubtest"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// withToken is the small model with one more large file that is carried over.
func withToken() *hubtest.Model {
	return hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, ShardBytes: 30_000, Extra: map[string][]byte{
		names.Chart: hubtest.OwnPicture[names.Chart], "tokenizer.model": bytes.Repeat([]byte("token"), 5000)}})
}

// copyWorld is a hub that can copy large files between repos.
func copyWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, withToken(), hubtest.WithXetHashes(), hubtest.WithLFSThreshold(20_000))
}

const copyRoute = "/api/models/*/lfs-files/duplicate"

// TestCopiesFallBack checks that a copy inside the hub that is refused, fails, or is promised and
// not made only costs an upload.
func TestCopiesFallBack(t *testing.T) {
	t.Parallel()
	w := copyWorld(t)
	w.mustConvert(t)
	want := w.target()
	if w.Count("POST", copyRoute) != 1 || w.Count("", "*/resolve/*/tokenizer.model") != 0 {
		t.Error("the file was not copied inside the hub")
	}
	// where no file has a hash of Xet
	plain := newWorld(t, withToken(), hubtest.WithLFSThreshold(20_000))
	plain.mustConvert(t)
	sameFiles(t, plain.target(), want)
	if plain.Count("", "*/resolve/*/tokenizer.model") == 0 {
		t.Error("the file was not fetched")
	}
	for name, action := range map[string]hubtest.Action{
		"no such route": hubtest.Error(404, "", "Not Found"),
		"not allowed":   hubtest.Error(403, "", "Forbidden"),
		"broken":        hubtest.Error(500, "", "Internal Error"),
		"cut off":       hubtest.Reset(),
		"refused":       hubtest.Status(200, jsonAnswer, `{"failed":[{"sha256":"`+want["tokenizer.model"].SHA256+`","error":"other region"}]}`),
		"not made":      hubtest.Status(200, jsonAnswer, `{"failed":[]}`),
	} {
		t.Run(name, func(t *testing.T) {
			w := copyWorld(t)
			w.Inject(hubtest.Fault{Name: "copy", Method: "POST", Path: copyRoute, Times: always, Action: action})
			w.mustConvert(t)
			sameFiles(t, w.target(), want)
			if w.FaultsActed("copy") == 0 {
				t.Error("the fault did not act")
			}
		})
	}
}

var jsonAnswer = hubtest.Header{"Content-Type": "application/json"}

// TestCorruptCopiedFile checks that the hash of a file that is carried over catches wrong bytes,
// and that the file is read again.
func TestCorruptCopiedFile(t *testing.T) {
	t.Parallel()
	for _, times := range []int{1, always} {
		w := newWorld(t, withToken(), hubtest.WithLFSThreshold(20_000))
		token := w.Files(sourceRepo, "main")["tokenizer.model"]
		w.Inject(hubtest.Fault{Name: "corrupt", Host: hubtest.HostCDN, Times: times, Path: "*" + token.SHA256})
		_, err := w.convert(t.Context(), t, t.TempDir())
		if isThere := w.target()["tokenizer.model"] == token; w.FaultsActed("corrupt") == 0 || isThere != (times == 1) || isThere != (err == nil) {
			t.Errorf("%d times damaged, it's carried over: %v, %v", times, isThere, err)
		}
	}
}

// manyCopies is the small model with six files of a megabyte that are carried over.
func manyCopies() *hubtest.Model {
	extra := map[string][]byte{}
	for i := range 6 {
		extra[fmt.Sprintf("vocab-%d.model", i)] = bytes.Repeat([]byte{0, byte(i)}, 500_000)
	}
	return hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, Extra: extra})
}

// copyDisk is a budget that holds two of the files, and an output.
const copyDisk = 2_200_000

// TestCopiesKeepToTheDisk checks that with --push alone, files that are carried over keep to the
// disk budget, as the plan says, and arrive unchanged.
func TestCopiesKeepToTheDisk(t *testing.T) {
	t.Parallel()
	w, work := newWorld(t, manyCopies(), hubtest.WithLFSThreshold(500_000)), filepath.Join(t.TempDir(), "work")
	var most atomic.Int64
	look := func(x *hubtest.Exchange) {
		most.Store(max(most.Load(), folderBytes(work)))
		x.Next(x.ResponseWriter)
	}
	w.Inject(hubtest.Fault{Name: "look", Method: "PUT", Times: always, Action: look})
	begun := ledger.New(w.planned(t).Digest(), false)
	begun.Claim(plan.IdentityOf(w.planned(t), sourceRepo), "", nil)
	shared.Write(t, filepath.Join(work, journalFile), begun.ForRepo(nil, nil))
	for name := range w.Files(sourceRepo, "main") {
		if strings.HasPrefix(name, "vocab") { // as a run that was killed may leave them
			shared.Write(t, filepath.Join(work, ".df11-convert", "files", name), make([]byte, copyDisk/2))
		}
	}
	if _, err := w.convert(t.Context(), t, work, func(o *convert.Options) { o.Disk = copyDisk }); err != nil {
		t.Fatal(err)
	}
	if n := most.Load(); n > copyDisk+journalRoom || n < 1_000_000 || w.FaultsActed("look") < 6 {
		t.Errorf("%d bytes on disk at one of %d uploads, %d are allowed", n, w.FaultsActed("look"), copyDisk)
	}
	for name, f := range w.Files(sourceRepo, "main") {
		if strings.HasPrefix(name, "vocab") && w.target()[name] != f {
			t.Errorf("%s was not carried over", name)
		}
	}
}

// journalRoom is for the run's own notes.
const journalRoom = 100_000

// folderBytes adds up the sizes of files. Files come and go meanwhile, so it looks until it has
// found the same sum twice.
func folderBytes(dir string) int64 {
	for before := int64(-1); ; {
		var now int64
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil //nolint:nilerr // it is gone
			}
			if st, err := d.Info(); err == nil {
				now += st.Size()
			}
			return nil
		})
		if now == before {
			return now
		}
		before = now
	}
}

// TestCopyLargerThanTheDisk checks that a file that no disk budget holds is refused before any
// work, unless the Hub can copy it.
func TestCopyLargerThanTheDisk(t *testing.T) {
	t.Parallel()
	largeFiles := func(n int) *hubtest.Model {
		files := map[string][]byte{"vocab.model": bytes.Repeat([]byte{0, 1}, copyDisk)}
		for i := range n - 1 {
			files[fmt.Sprintf("vocab-%d.model", i)] = bytes.Repeat([]byte{0, byte(i)}, copyDisk)
		}
		return hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, Extra: files})
	}
	large := func() *hubtest.Model { return largeFiles(1) }
	disk := func(o *convert.Options) { o.Disk = copyDisk }
	w := newWorld(t, large(), hubtest.WithLFSThreshold(500_000))
	_, err := w.convert(t.Context(), t, t.TempDir(), disk)
	if e := (*budget.DiskError)(nil); !errors.As(err, &e) || e.Need != 2*copyDisk || !strings.Contains(err.Error(), "vocab.model") {
		t.Errorf("error %v", err)
	}
	if w.Count("PUT", "*")+w.Count("POST", "/api/repos/*") > 0 {
		t.Error("something was converted, or a repo was made before")
	}
	if _, err := w.convert(t.Context(), t, t.TempDir(), disk, inFolder(t.TempDir())); err != nil {
		t.Errorf("a copy that stays, for which no budget was set: %v", err)
	}
	w = newWorld(t, large(), hubtest.WithLFSThreshold(500_000), hubtest.WithXetHashes())
	w.mustConvert(t, disk)
	const lists = "/api/models/" + sourceRepo + "/tree/*"
	many := newWorld(t, largeFiles(4), hubtest.WithLFSThreshold(500_000), hubtest.WithXetHashes())
	many.mustConvert(t, disk)
	if one, four := w.Count("GET", lists), many.Count("GET", lists); one == 0 || one != four {
		t.Errorf("for one large file the source was listed %d times, for four %d times", one, four)
	}
	w = newWorld(t, large(), hubtest.WithLFSThreshold(500_000), hubtest.WithXetHashes())
	w.Inject(hubtest.Fault{Method: "POST", Path: copyRoute, Times: always, Action: hubtest.Error(403, "", "Forbidden")})
	if _, err := w.convert(t.Context(), t, t.TempDir(), disk); !errors.As(err, new(*budget.DiskError)) {
		t.Errorf("a copy that the Hub does not make after all: %v", err)
	}
}

// TestLastCommitOpensFilesOneAtATime checks that the number of files that a run copies doesn't
// matter to a system's limit on open files.
func TestLastCommitOpensFilesOneAtATime(t *testing.T) {
	t.Parallel()
	m := hubtest.NewLlama(7, hubtest.ModelOptions{Hidden: 32, Vocab: 256, Layers: 2, Extra: hubtest.OwnPicture})
	w := newWorld(t, m)
	more := map[string][]byte{}
	for i := range 200 {
		more[fmt.Sprintf("voices/%d.json", i)] = []byte("{}")
	}
	w.Push(sourceRepo, "main", more)
	work, most := filepath.Join(t.TempDir(), "work"), 0
	var mu sync.Mutex
	w.Inject(hubtest.Fault{Method: "POST", Path: "/api/models/*/preupload/*", Times: 1000, Action: func(x *hubtest.Exchange) {
		mu.Lock()
		most = max(most, openFiles(work))
		mu.Unlock()
		x.Next(x)
	}})
	_, err := w.convert(t.Context(), t, work)
	shared.Must(t, err)
	if n := len(w.target()); n < 200 || most > 50 {
		t.Errorf("%d files were published, and %d were open at once", n, most)
	}
}
