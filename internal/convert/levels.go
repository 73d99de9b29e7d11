package convert

import (
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/metadata"
)

// A Level is how much of a DF11 model is verified.
type Level string

// The levels, from cheap to complete. Each contains the levels before it, with one exception:
// LevelProof reads no weights of the original, so it compares hashes where LevelFull compares bits.
const (
	// known hashes, headers, arrays, tables, positions, and completeness against the plan
	LevelStructure Level = "structure"
	// original files are rebuilt, and their SHA-256 is compared with the published one
	LevelProof Level = "proof"
	LevelFull  Level = "full" // all 16 bits of every weight are compared with the original
)

// Levels lists all levels, from cheap to complete.
var Levels = []Level{LevelStructure, LevelProof, LevelFull}

// Cheapest returns the level that reads least to show that a pair is equal. It's LevelProof if that
// needs no weight of the original: the SHA-256 of every file is published, and all tensors in those
// files were converted.
func Cheapest(p back.Pair) Level {
	if p.Plan != nil && len(p.Plan.Dropped) > 0 || slices.Contains(p.Model.Original().SHA256, "") {
		return LevelFull
	}
	return LevelProof
}

// VerifyReport is what a verification found.
type VerifyReport struct {
	Model   string
	Commit  string
	Against string
	// AgainstCommit is the original's commit, or "" for a local original. AgainstOnMain says
	// whether main has the same weight files. It's set only if the model itself named the original.
	AgainstCommit string
	AgainstOnMain *bool
	// AgainstFile is the one weight file of the original, if its name is unusual. Component is the
	// folder of a pipeline.
	AgainstFile string
	Component   string
	Layout      catalog.Layout
	Level       Level
	OK          bool // no fault in the model or the pair
	Equal       Equality
	Faults
	back.Checked
	// TensorsLeftOut are the names of the original's tensors that no conversion stores, because they
	// are of other models.
	TensorsLeftOut []string
	// Weights counts the weights in units. All were compared or hashed. It's 0 if the level does
	// neither, or if an earlier check found a fault.
	Weights int64
	Files   int
	// Published says that the SHA-256 of every rebuilt file was published, not computed here.
	Published bool
	// Alone says whether decode restores the original's files without the original, and WhyNotAlone
	// why it doesn't. Alone is nil if the level doesn't compare the weights, or if there is a
	// fault.
	Alone       *bool
	WhyNotAlone error
	// Verified says what compared the weights; nil if the level doesn't.
	Verified []metadata.Verification
	// NoOriginal says why the model was compared with no original, although the level asks for it.
	// The caller sets it.
	NoOriginal error
}

// Faults are what is wrong, by subject, as far as the level goes.
type Faults struct {
	Damage     error // of the model alone; nil: none
	Difference error // of the pair; nil: none
	// MadeFrom is the original that the manifest names, if the pair differs and the manifest lists
	// other source files than the pair's original has. Otherwise it's "".
	MadeFrom string
	// FilesCompared says that all files next to the weights were compared. Those that differ are in
	// Beside.
	FilesCompared bool
}

// first returns the fault of the model, or else that of the pair.
func (f Faults) first() error {
	if f.Damage != nil {
		return f.Damage
	}
	return f.Difference
}

func (f Faults) faulty() bool { return f.first() != nil }

// An Equality says whether this process has compared all weights of a pair and found them the same.
// Only Verify makes an Equality that says so: a manifest, a card, and an earlier run's report
// can't.
type Equality struct{ shown bool }

// Shown reports whether the weights are the same.
func (e Equality) Shown() bool { return e.shown }

// MarshalJSON returns true or false.
func (e Equality) MarshalJSON() ([]byte, error) { return strconv.AppendBool(nil, e.shown), nil }
