package publish_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// TestRemoveWork checks that only the work of a target that is up to date goes, and only if the target has all
// that the work made.
func TestRemoveWork(t *testing.T) {
	digest := world.Sum([]byte("plan"))
	at := &publish.UpToDate{Ref: "me/m-DF11@main", Manifest: &metadata.Manifest{Outputs: []metadata.OutputFile{
		{Path: "sub/head.safetensors", Kind: metadata.KindUnit, Size: 4, SHA256: "sum"}, {Path: "LICENSE", Kind: metadata.KindCopied},
	}}}
	at.Manifest.Plan.Digest = digest
	all := []string{".", ".df11-convert", ".df11-convert/files", ".df11-convert/files/LICENSE", ".df11-convert/files/sub",
		".df11-convert/files/sub/head.safetensors", ".df11-convert/made", ".df11-convert/part-1-of-1.json"}
	for name, c := range map[string]struct {
		digest, sum string
		branch      string // "" for that of the target
		held        bool   // by another run
		mine        string
		left        []string
	}{
		"its work":              {digest: digest, sum: "sum"},
		"next to the user's":    {digest: digest, sum: "sum", mine: "notes", left: []string{".", "notes"}},
		"of another plan":       {digest: world.Sum(nil), sum: "sum", left: all},
		"for another branch":    {digest: digest, sum: "sum", branch: "me/m-DF11@dev", left: all},
		"of an earlier program": {digest: digest, sum: "sum", branch: "none", left: all},
		"the target lacks it":   {digest: digest, sum: "other", left: all},
		"another run is there":  {digest: digest, sum: "sum", held: true, left: all},
		"a file of nobody's":    {digest: digest, sum: "sum", mine: ".df11-convert/files/x", left: []string{".", ".df11-convert", ".df11-convert/files", ".df11-convert/files/x", ".df11-convert/made"}},
		"where the result goes": {digest: digest, sum: "sum", mine: "sub/head.safetensors", left: []string{".", "sub", "sub/head.safetensors"}},
	} {
		root := filepath.Join(t.TempDir(), "work")
		f, err := publish.OpenFolder(t.Context(), root, false, publish.NewConversion(&plan.Plan{}, publish.Origin{}, "part-1-of-1", false), 0o600)
		world.Must(t, err)
		l := ledger.New(c.digest, false)
		if l.Ref = cmp.Or(c.branch, at.Ref); c.branch == "none" {
			l.Ref = ""
		}
		o := ledger.Output{Path: "sub/head.safetensors", Size: 4, SHA256: c.sum}
		o.Here = true
		world.Must(t, l.Save(f.State(), "part-1-of-1.json"))
		world.Must(t, l.Add(o))
		world.Must(t, l.Close())
		files := filepath.Join(root, ".df11-convert", "files")
		world.Must(t, os.MkdirAll(filepath.Join(files, "sub"), 0o700))
		for _, name := range []string{"sub/head.safetensors", "LICENSE"} {
			world.Write(t, filepath.Join(files, name), []byte("data"))
		}
		if !c.held {
			spool := filepath.Join(f.State().Name(), names.KeptSpool("sub/head.safetensors"))
			world.Write(t, spool, []byte("data"))
			world.Must(t, f.Close(false)) // it has saved nothing, so only the lock goes
		}
		if c.mine != "" {
			mine := filepath.Join(root, c.mine)
			world.Must(t, os.MkdirAll(filepath.Dir(mine), 0o700))
			world.Write(t, mine, []byte("mine"))
		}
		world.Must(t, at.RemoveWork(root, "part-1-of-1", 0))
		var left []string
		_ = filepath.WalkDir(root, func(name string, _ os.DirEntry, err error) error {
			rel, _ := filepath.Rel(root, name)
			rel = filepath.ToSlash(rel)
			if err == nil && rel != ".df11-convert/lock" && !strings.Contains(rel, "spool-") {
				left = append(left, rel)
			}
			return nil
		})
		if !slices.Equal(left, c.left) {
			t.Errorf("%s: left are %q", name, left)
		}
		if c.held {
			world.Must(t, f.Close(false))
		}
	}
}
