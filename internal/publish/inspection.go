package publish

import (
	"cmp"
	"maps"
	"slices"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
)

// An Inspection is what a run found in a target when it looked at it. It never changes.
type Inspection struct {
	Where     string                // the target, for people
	Manifest  *metadata.Manifest    // of a finished conversion; nil if there is none
	Ours      map[string]names.File // that may be replaced or deleted, by path
	Kept      map[string]bool       // that have the very content to be written, and are not ours
	CardStays bool                  // the card is somebody else's
	Made      bool                  // the manifest is of this plan and of these weights
	// it holds the finished result of the plan, and no other file of ours
	Current  bool
	versions map[string]string       // of all files
	files    map[string]names.File   // as a Hub lists them
	listed   map[string][]names.File // files as they were when they were ours, by path
	pinned   map[string]names.File   // those of the very commit
	claims   map[string]ledger.Claim // that count, by the file that makes them
	stranger string                  // names the result of somebody else's journal or manifest
}

// isOf reports whether that manifest is of a commit, too.
func (in *Inspection) isOf(commit string) bool {
	return in.Made && in.Manifest.Source.Commit == commit
}

// Intact reports whether a target is as the run that wrote its manifest has left it, but for a card
// of somebody else's.
func (in *Inspection) Intact() bool {
	return in.Manifest != nil && !slices.ContainsFunc(in.Manifest.Outputs, in.lost)
}

// lost reports whether a file of the manifest is gone or has changed.
func (in *Inspection) lost(o metadata.OutputFile) bool {
	_, ours := in.Ours[o.Path]
	f, listed := in.files[o.Path]
	differs := !ours && !in.Kept[o.Path] || listed && !f.MayBe(o.File())
	return differs && !(o.Path == names.Card && in.CardStays)
}

// isModel reports whether a branch holds a model, by whatever program.
func (in *Inspection) isModel() bool {
	return in.Manifest != nil || in.versions[names.Config] != ""
}

// Holds reports whether a target has a file: a Hub lists it, or what is ours in a folder was hashed.
func (in *Inspection) Holds(f names.File) bool {
	if in.files == nil {
		return f.SHA256 != "" && in.Ours[f.Path] == f
	}
	return in.files[f.Path] == f
}

// torn reports whether a file of ours is listed with its SHA-256 but another size. Some Hubs list
// the file of another branch, and keep the old bytes.
func (in *Inspection) torn(name string) bool {
	return slices.ContainsFunc(in.listed[name], func(f names.File) bool {
		return f.SHA256 == in.files[name].SHA256 && f.Size != in.files[name].Size &&
			f.Size != ledger.UnknownSize
	})
}

// ManifestSHA256 is that of the manifest that was there when the target was looked at; "" if there
// was none.
func (in *Inspection) ManifestSHA256() string { return in.Ours[names.Manifest].SHA256 }

// former is what a journal says of the files that are ours, by path.
func (in *Inspection) former() []names.File {
	return slices.SortedFunc(maps.Values(in.Ours),
		func(a, b names.File) int { return cmp.Compare(a.Path, b.Path) })
}
