package pipeline

import (
	"slices"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/catalog"
)

// Level is how much of a DF11 model is verified.
type Level string

// The levels, from cheap to complete. Each contains the levels before it, except that LevelProof
// needs no weights of the original and so compares hashes where LevelFull compares bits.
const (
	// sha256 that cost nothing, headers, arrays, tables, positions; completeness against the plan
	LevelStructure Level = "structure"
	// the original files are rebuilt and their sha256 compared with the published one
	LevelProof Level = "proof"
	LevelFull  Level = "full" // all 16 bits of every weight against the original
)

// Levels are all levels, from cheap to complete.
var Levels = []Level{LevelStructure, LevelProof, LevelFull}

// Cheapest is the level that reads least to show that a pair is equal: LevelProof where it needs no
// weight of the original, which is where the sha256 of every file is published and all their
// tensors were converted.
func Cheapest(p back.Pair) Level {
	if len(p.Plan.Dropped) > 0 || slices.Contains(p.Model.SHA256, "") {
		return LevelFull
	}
	return LevelProof
}

// VerifyReport is what a verification found.
type VerifyReport struct {
	Model   string `json:"model"`
	Commit  string `json:"commit,omitempty"`
	Against string `json:"against,omitempty"`
	// AgainstCommit is the original's commit; "" for a local one. AgainstOnMain says, where the
	// model itself named the original, whether main has the same files; nil where nobody asked.
	AgainstCommit string `json:"against_commit,omitempty"`
	AgainstOnMain *bool  `json:"against_on_main,omitempty"`
	// AgainstFile is the one weight file of the original, where its name is not the usual one;
	// Component the folder of a pipeline.
	AgainstFile string         `json:"against_file,omitempty"`
	Component   string         `json:"component,omitempty"`
	Layout      catalog.Layout `json:"layout"`
	Level       Level          `json:"level"`
	OK          bool           `json:"-"`     // nothing is wrong where the level looks
	Equal       bool           `json:"equal"` // the level is proof or full, and no weight differs
	// OtherOriginal: the model is at fault, and its manifest lists other files of the original than
	// these.
	OtherOriginal bool `json:"other_original,omitempty"`
	back.Checked
	// of units in DF11, all compared or hashed; 0 at a level that does neither
	Weights int64 `json:"weights"`
	Files   int   `json:"files_rebuilt,omitempty"`
	// the sha256 of all rebuilt files were published, not computed here
	Published bool       `json:"sha256_published,omitempty"`
	GPU       *GPUReport `json:"gpu,omitempty"` // nil: compared on the CPU alone
}

// GPUReport names the second decoder of units, which compared all their weights once more.
type GPUReport struct {
	Kernel string `json:"kernel"`
	Device string `json:"device"`
	// that it decoded; the units after its fault were decoded on the CPU alone
	Units int `json:"units"`
}
