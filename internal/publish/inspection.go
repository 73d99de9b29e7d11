package publish

import (
	"cmp"
	"slices"
	"time"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// Found is a file of a destination. The size and the SHA-256 are those of files of ours.
type Found struct {
	names.File
	Standing
}

// An Inspection is what a run found in a destination when it looked at it. It never changes.
type Inspection struct {
	Where    string             // the destination, for people
	Manifest *metadata.Manifest // of a finished conversion; nil if there is none
	ByPlan   bool               // the manifest is of this plan and of these weights
	// the destination holds the finished result of the plan, and no other file of ours
	Current bool
	Files   map[string]Found // by path
	// Published is when a repo's newest commit was made; zero if that isn't known.
	Published time.Time

	contents contents                // of the files
	versions map[string]string       // of the files
	onHub    map[string]names.File   // the files as a Hub lists them; nil for a folder
	listed   map[string][]listed     // the files of ours that claims list, or have listed, by path
	claims   map[string]ledger.Claim // that count, by the file that makes them
	stranger string                  // names the result of a claim that doesn't count
	card     cardMarks
}

// listed is a file as a claim lists it. A manifest has git's hash of small ones.
type listed struct {
	names.File
	blob   string
	commit string // of the source that the claim is of
}

// Ours lists the files that a run may replace or delete, by path.
func (in *Inspection) Ours() (files []names.File) {
	for _, f := range in.Files {
		if f.Standing == Ours {
			files = append(files, f.File)
		}
	}
	slices.SortFunc(files, func(a, b names.File) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

// Given lists the files that Force lets a run overwrite although they aren't ours.
func (in *Inspection) Given() (paths []string) {
	for name, f := range in.Files {
		if f.Standing == Given {
			paths = append(paths, name)
		}
	}
	slices.Sort(paths)
	return paths
}

// isOf reports whether the manifest is of this plan and this commit.
func (in *Inspection) isOf(commit string) bool {
	return in.ByPlan && in.Manifest.Source.Commit == commit
}

// isNewer reports whether the manifest is ours, by rules that a newer version of this program has.
func (in *Inspection) isNewer() bool {
	return in.Files[names.Manifest].Standing == Ours && in.Manifest.Plan.Rules > plan.Rules
}

// Intact reports whether a destination has every file that its manifest lists, unchanged. A card may
// be someone else's.
func (in *Inspection) Intact() bool {
	return in.Manifest != nil && !slices.ContainsFunc(in.Manifest.Outputs, in.lost)
}

// lost reports whether a file of the manifest is gone or has changed.
func (in *Inspection) lost(o metadata.OutputFile) bool {
	here := in.Files[o.Path]
	if o.Path == names.Card && (in.CardStays() || here.Standing == Shared) {
		return false
	}
	f, onHub := in.onHub[o.Path]
	return here.Standing != Ours && here.Standing != Equal || onHub && !f.MayBe(o.File())
}

// isModel reports whether a branch holds a model, by whatever program.
func (in *Inspection) isModel() bool {
	return in.Manifest != nil || in.versions[names.Config] != ""
}

// claimsOutput reports whether the manifest lists an output.
func (in *Inspection) claimsOutput(f names.File) bool {
	return in.Manifest != nil && slices.ContainsFunc(in.Manifest.Outputs,
		func(o metadata.OutputFile) bool { return o.File() == f })
}

// Holds reports whether a destination has a file: a Hub lists it, or what is ours in a folder was
// hashed.
func (in *Inspection) Holds(f names.File) bool {
	if in.onHub == nil {
		return f.SHA256 != "" && in.Files[f.Path] == Found{f, Ours}
	}
	return in.onHub[f.Path] == f
}

// torn reports whether a file of ours is listed with its SHA-256 but another size. KohakuHub lists
// the file of another branch, and keeps the old bytes.
func (in *Inspection) torn(name string) bool {
	now := in.onHub[name]
	return slices.ContainsFunc(in.listed[name], func(f listed) bool {
		return f.SHA256 == now.SHA256 && f.Size != now.Size && f.Size != ledger.UnknownSize
	})
}

// ManifestSHA256 is that of the manifest, if it's ours, or "".
func (in *Inspection) ManifestSHA256() string { return in.Files[names.Manifest].SHA256 }
