package convert_test

import (
	"testing"

	"github.com/df11-convert/df11-convert/internal/names"
	shared "github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestOfficialRemainderIsRenamed checks a target whose remainder has the official compressor's name,
// as earlier versions of this program wrote it. The next run renames it in one commit, and leaves the
// modules as they are.
func TestOfficialRemainderIsRenamed(t *testing.T) {
	t.Parallel()
	const earlier, now = "model.safetensors", names.Remainder + ".safetensors"
	w := licensed(t)
	want, m := besides(w.target()), w.manifest(t)
	m.Plan.Digest, at(m, now).Digest = shared.Sum([]byte("plan")), shared.Sum([]byte("output"))
	at(m, now).Path = earlier
	manifest, err := m.Marshal()
	shared.Must(t, err)
	w.Push(targetRepo, "main", map[string][]byte{
		earlier: []byte(content(t, w.Server, targetRepo, "main", now)), now: nil, names.Manifest: manifest,
	})
	head := w.Head(targetRepo, "main")
	r, x := w.refresh(t)
	sameFiles(t, besides(w.target()), want)
	if w.Commits(targetRepo, "main")[0].Parent != head {
		t.Error("main did not move by one commit")
	}
	if x.sent > want[now].Size || r.Made.Now != 1 || r.Verified.Earlier == 0 {
		t.Errorf("%+v, %d outputs were made, %d weights are taken over", x, r.Made.Now, r.Verified.Earlier)
	}
}
