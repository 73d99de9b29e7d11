package metadata

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/python"
)

// SchemaVersion is the manifest version that this package writes, and the newest that it reads.
const SchemaVersion = 1

// Limits for reading a manifest (docs/format.md §16). A plan within its own limits makes a smaller
// one.
const (
	maxManifestBytes = 256 << 20
	maxObjects       = 1 << 19
	maxValues        = 1 << 23
)

// MaxManifestBytes returns the size of the largest manifest that fits a memory budget; 0 means no
// budget. Reading takes up to five times its size.
func MaxManifestBytes(memory int64) int64 { return within(memory, maxManifestBytes, 8) }

// within returns how many things of each bytes fit a memory budget, and limit at most.
func within(memory, limit, each int64) int64 {
	if memory == 0 {
		return limit
	}
	return min(limit, memory/each)
}

// ErrMemory means that a memory budget is too small for a manifest or a journal.
var ErrMemory = errors.New("it takes more than the memory budget")

// Fits returns ErrMemory if a memory budget can't hold the decoded values of a manifest or a
// journal; 0 means no budget.
func Fits(data []byte, memory int64) error {
	objects, values := within(memory, math.MaxInt, 1024), within(memory, math.MaxInt, 128)
	if python.Bounded(data, int(objects), int(values)) != nil {
		return ErrMemory
	}
	return nil
}

// A Manifest is df11-manifest.json: what was converted into what, how, and which checks it passed
// (docs/manifest.md). It holds no times, host names, or counts of machines, so the same source and
// plan make the same bytes.
type Manifest struct {
	Schema       int            `json:"schema_version"`
	Tool         Tool           `json:"tool"`
	Source       Source         `json:"source"`
	Plan         PlanInfo       `json:"plan"`
	Units        []Unit         `json:"units"`
	Outputs      []OutputFile   `json:"files"`
	Aliases      []Alias        `json:"aliases,omitempty"`
	Renamed      []Rename       `json:"renamed,omitempty"`
	Dropped      []string       `json:"dropped,omitempty"`
	NotCopied    []plan.Skipped `json:"not_copied,omitempty"`
	Differences  []string       `json:"differences,omitempty"`
	Verification []Verification `json:"verification,omitempty"`
}

// A Tool is the program that made the repo.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A Source is the model that was converted.
type Source struct {
	// "org/name"; empty for a local source that states no base model
	Repo   string       `json:"repo,omitempty"`
	Commit string       `json:"commit,omitempty"` // pinned commit; empty for a local source
	Files  []SourceFile `json:"files"`
	// Arranged is the class of diffusers whose tensors a file for ComfyUI was made of: the outputs
	// hold those of Files under other names, and joined. It's "" if they have the names of Files.
	Arranged string `json:"arranged,omitempty"`
}

// Integrity is how much is known about a source file.
type Integrity string

// Integrity states.
const (
	// the run hashed all its bytes while converting them
	Streamed Integrity = "streamed"
	// rebuilt from the DF11 files, with the published SHA-256
	Proof Integrity = "proof"
	// an earlier run verified all that was made from it, and its SHA-256 is the published one
	Earlier   Integrity = "earlier"
	Unchecked Integrity = "unchecked" // read by ranges; its hash was never computed
)

// A SourceFile is a source file that was converted. Copied files are among the outputs.
type SourceFile struct {
	Path      string    `json:"path"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256,omitempty"` // empty if unchecked and not published
	Integrity Integrity `json:"integrity"`
	// safetensors header JSON as stored, with its padding
	Header string `json:"header,omitempty"`
}

// PlanInfo identifies the plan that was carried out.
type PlanInfo struct {
	Digest     string `json:"digest"`
	Layout     string `json:"layout"`
	Dict       string `json:"pattern_dict_sha256"`
	Entry      string `json:"catalog_entry,omitempty"`
	Provenance string `json:"provenance"`
	Asked      string `json:"asked,omitempty"` // plan.Options.Asked
	Rules      int    `json:"rules,omitempty"` // plan.Rules; 0 of a program that didn't number them
}

// Status is the form in which a unit is stored.
type Status string

// Unit states.
const (
	DF11 Status = "df11" // the six DF11 tensors
	BF16 Status = "bf16" // the source's weights unchanged, because DF11 can't hold them
)

// A Unit is a module that is compressed, or that stays in BF16 because DF11 can't hold it.
type Unit struct {
	Path     string       `json:"path"`
	File     string       `json:"file,omitempty"`
	Status   Status       `json:"status"`
	Reason   string       `json:"reason,omitempty"` // why it stays in BF16
	NWeights int64        `json:"n_weights"`
	Tensors  []UnitTensor `json:"tensors,omitempty"` // in encoding order
	// other tools may choose another code (docs/format.md §5.1)
	TieBroken bool  `json:"limiter_tie,omitempty"`
	CodedBits int64 `json:"coded_bits,omitempty"` // length of the coded exponents
	// nil for a unit in BF16
	Exponents *Exponents `json:"exponents,omitempty"`
}

// Exponents counts a unit's weights by exponent: Counts[i] weights have the exponent First+i.
type Exponents struct {
	First  int      `json:"first"`
	Counts []uint64 `json:"counts"`
}

// ExponentsOf returns a histogram's counts from the first exponent that occurs to the last, or nil
// if none does.
func ExponentsOf(counts [256]uint64) *Exponents {
	first, end := 0, len(counts)
	for ; first < end && counts[first] == 0; first++ {
	}
	for ; end > first && counts[end-1] == 0; end-- {
	}
	if first == end {
		return nil
	}
	return &Exponents{First: first, Counts: slices.Clone(counts[first:end])}
}

// A UnitTensor is one weight of a unit.
type UnitTensor struct {
	Name  string  `json:"name"` // in the output
	Shape []int64 `json:"shape"`
	// the parameter that it's a slice of, by its name in the output; "" if it's a whole tensor
	SliceOf string `json:"slice_of,omitempty"`
}

// Kind is what an output file is for.
type Kind string

// Kinds of output files.
const (
	KindUnit      Kind = "unit"      // DF11 units and their siblings
	KindRemainder Kind = "remainder" // tensors of no unit
	KindSingle    Kind = "single"    // units and remainder in one file
	KindIndex     Kind = "index"     // index of the remainder
	KindConfig    Kind = "config"    // the source's config with dfloat11_config, or a new one
	KindCard      Kind = "card"
	KindImage     Kind = "image"  // the model card's picture
	KindCopied    Kind = "copied" // equal to the source's file of the same path
)

// Weights reports whether a file holds tensors of the model.
func (k Kind) Weights() bool { return k == KindUnit || k == KindRemainder || k == KindSingle }

// An OutputFile is one file of the repo. The manifest doesn't list itself.
type OutputFile struct {
	Path   string `json:"path"`
	Kind   Kind   `json:"kind"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Blob   string `json:"git_blob,omitempty"` // git's hash of a small file, as a Hub lists it
	// Kept says that the run found the file with the right content and left it.
	Kept bool `json:"kept,omitempty"`
	// SHA-256 of our part of a card, to which others may have added
	Part string `json:"part_sha256,omitempty"`
	// plan.OutputDigests, for a weight file
	Digest string `json:"digest,omitempty"`
	// Earlier is the run that verified a weight file; nil if it was the run that wrote the
	// manifest.
	Earlier *Run `json:"verified_earlier,omitempty"`
}

// A Run is identified by the program's version and the source's commit.
type Run struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// File returns the file's path, size, and SHA-256.
func (f OutputFile) File() names.File {
	return names.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256}
}

// An Alias is a tensor that isn't stored because another one has the same bits.
type Alias struct {
	Name string `json:"name"`
	Of   string `json:"of"`
}

// A Rename is a tensor whose name differs between source and output.
type Rename struct {
	Source string `json:"source"`
	Name   string `json:"name"`
}

// Methods of a verification.
const (
	MethodCPU = "cpu" // always
	MethodGPU = "gpu" // also, if there is a GPU
)

// A Verification is one check that was made.
type Verification struct {
	Method   string `json:"method"`
	Decoder  string `json:"decoder"`          // in words
	Device   string `json:"device,omitempty"` // model of the GPU
	NUnits   int64  `json:"n_units"`          // decoded from the stored bytes
	NTensors int64  `json:"n_tensors"`        // compared with the source, including copied ones
	NWeights int64  `json:"n_weights"`        // of units; all 16 bits compared and equal
	// NExactF32 counts the source's F32 weights whose lower half was read and is zero.
	NExactF32 int64 `json:"n_exact_f32,omitempty"`
}

// AddVerified adds more to list, by method.
func AddVerified(list, more []Verification) []Verification {
	for _, v := range more {
		i := slices.IndexFunc(list, func(x Verification) bool { return x.Method == v.Method })
		if i < 0 {
			list = append(list, v)
			continue
		}
		list[i].NUnits += v.NUnits
		list[i].NTensors += v.NTensors
		list[i].NWeights += v.NWeights
		list[i].NExactF32 += v.NExactF32
	}
	return list
}

// Verified returns how many weights of units were verified, all in all: by the run that wrote the
// manifest, and by the runs whose files it took over.
func (m *Manifest) Verified() (weights int64) {
	for _, v := range m.Verification {
		weights = max(weights, v.NWeights)
	}
	earlier := map[string]bool{}
	for _, o := range m.Outputs {
		earlier[o.Path] = o.Earlier != nil
	}
	for _, u := range m.Units {
		if u.Status == DF11 && earlier[u.File] {
			weights += u.NWeights
		}
	}
	return weights
}

// Identity returns the identity of the result that the manifest describes.
func (m *Manifest) Identity() plan.Identity {
	var weights []string
	for _, f := range m.Source.Files {
		weights = append(weights, f.Path)
	}
	return plan.NewIdentity(m.Source.Repo, catalog.Layout(m.Plan.Layout), weights, m.Plan.Dict)
}

// Listed returns the outputs by path.
func (m *Manifest) Listed() map[string]OutputFile {
	listed := make(map[string]OutputFile, len(m.Outputs))
	for _, o := range m.Outputs {
		listed[o.Path] = o
	}
	return listed
}

// Marshal checks the manifest and returns its JSON: UTF-8, two-space indent, keys in the order of
// docs/manifest.md, final newline.
func (m *Manifest) Marshal() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	return numberList.ReplaceAllFunc(b.Bytes(), onOneLine), nil
}

// numberList matches an indented list of numbers. It never matches inside a string, because JSON
// strings hold no line ends.
var numberList = regexp.MustCompile(`\[\n +\d+(?:,\n +\d+)*\n +\]`)

// onOneLine joins the lines of a number list, so that people can read shapes.
func onOneLine(list []byte) []byte {
	numbers := bytes.Fields(list[1 : len(list)-1])
	return fmt.Appendf(nil, "[%s]", bytes.Join(numbers, []byte(" ")))
}

// A NewerError says that a newer version of this program wrote a manifest, in a form that this
// version can't read. It says nothing about the result.
type NewerError struct{ Schema int }

// Hint says what can be done about it.
func (e *NewerError) Hint() hint.Hint { return hint.NewerManifest }

func (e *NewerError) Error() string {
	return fmt.Sprintf("schema version %d is newer than this program, which reads up to %d",
		e.Schema, SchemaVersion)
}

// ParseManifest reads and checks a manifest of at most [MaxManifestBytes] within a memory budget; 0
// means no budget. It ignores members that it doesn't know. For a newer schema version, the error
// wraps a NewerError. The manifest is consistent in itself; only verify can find out whether it's
// true.
func ParseManifest(data []byte, memory int64) (*Manifest, error) {
	if err := cmp.Or(Fits(data, memory), python.Bounded(data, maxObjects, maxValues)); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	m := &Manifest{}
	err := python.Unmarshal(data, m)
	if m.Schema > SchemaVersion { // comes first; anything may follow
		return nil, fmt.Errorf("read manifest: %w", &NewerError{m.Schema})
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return m, nil
}
