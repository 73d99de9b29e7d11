package publish

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
)

// RemoveWork removes the work folder of a run of part that ended before it saw that the target is
// up to date: a signal came after its last commit, or another machine was faster. It removes
// nothing that a run could use: the journal must be of this plan and this branch, and list only
// outputs that the branch has. If another run has the folder, that run removes it.
func (s *UpToDate) RemoveWork(root, part string, memory int64) error {
	journal := path.Join(names.StateDir, journalName(part))
	if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(journal))); err != nil {
		return nil //nolint:nilerr // there is none, or none of ours
	}
	f, err := lockFolder(root, false, part, 0o600)
	if err != nil {
		if errors.Is(err, disk.ErrLocked) {
			return nil
		}
		return err
	}
	b, err := f.disk.Read(journal, metadata.MaxManifestBytes(memory))
	if err != nil || metadata.Fits(b, memory) != nil {
		return errors.Join(err, f.disk.Release())
	}
	left, published := ledger.ReadJournal(b), ledger.OfManifest(s.Manifest)
	if left.Plan != published.Plan || left.Ref != s.Ref {
		return f.disk.Release()
	}
	for name, o := range left.Outputs {
		if published.Outputs[name].File() != o.File() {
			return f.disk.Release()
		}
	}
	for _, o := range s.Manifest.Outputs {
		f.disk.Versions[f.pathOf(o.Path)] = ""
	}
	f.removeReadBack()
	f.ledger = ledger.New(published.Plan, false)
	f.ledger.Adopt(slices.Collect(maps.Values(published.Outputs)))
	return f.Close(true)
}
