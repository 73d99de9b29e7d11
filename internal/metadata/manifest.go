package metadata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/python"
)

// SchemaVersion is the version of the manifest that this package writes, and the newest that it
// reads.
const SchemaVersion = 1

// Limits of a manifest that is read (docs/format.md §16). The largest that a plan within its limits
// leads to is smaller.
const (
	maxManifestBytes = 256 << 20
	maxObjects       = 1 << 19
	maxValues        = 1 << 23
)

// MaxManifestBytes is the size of the largest manifest that is read within a memory budget; 0 is no
// budget. Reading takes up to five times its size.
func MaxManifestBytes(memory int64) int64 { return within(memory, maxManifestBytes, 8) }

// within is a limit, or as much of a memory budget as there is for each of its things if every one
// takes so many bytes.
func within(memory, limit, each int64) int64 {
	if memory == 0 {
		return limit
	}
	return min(limit, memory/each)
}

// Manifest records the source of a DF11 repo, its content, and the checks that were carried out
// (docs/manifest.md). It holds no times, no host names and no counts of machines: the same source
// and plan give the same bytes.
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
	Verification []Verification `json:"verification"`
}

// Tool names the program that made the repo.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Source is the model that was converted.
type Source struct {
	// "org/name"; empty for a local source without a stated base model
	Repo   string       `json:"repo,omitempty"`
	Commit string       `json:"commit,omitempty"` // pinned commit; empty for a local source
	Files  []SourceFile `json:"files"`
}

// Integrity says how much is known about a source file.
type Integrity string

// Integrity states.
const (
	// all its bytes passed through sha256 while they were converted
	Streamed Integrity = "streamed"
	// rebuilt from the DF11 files; the sha256 of the result is the published one
	Proof     Integrity = "proof"
	Unchecked Integrity = "unchecked" // read by ranges, its hash was never computed
)

// SourceFile is one file of the source that was converted; copied files are among the outputs.
type SourceFile struct {
	Path      string    `json:"path"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256,omitempty"` // empty if unchecked and not published
	Integrity Integrity `json:"integrity"`
	// safetensors header JSON as stored, padding included
	Header string `json:"header,omitempty"`
}

// PlanInfo identifies the decision that the conversion carried out.
type PlanInfo struct {
	Digest     string `json:"digest"`
	Layout     string `json:"layout"`
	Entry      string `json:"catalog_entry,omitempty"`
	Provenance string `json:"provenance"`
	Derived    bool   `json:"derived"`
}

// Status says in which form a unit is stored.
type Status string

// Unit states.
const (
	DF11 Status = "df11" // the six DF11 tensors
	BF16 Status = "bf16" // the source's weights unchanged, because DF11 cannot hold them
)

// Unit is one module that is compressed, or that stays in BF16 because DF11 cannot hold it.
type Unit struct {
	Path     string       `json:"path"`
	File     string       `json:"file,omitempty"`
	Status   Status       `json:"status"`
	Reason   string       `json:"reason,omitempty"` // why the unit stays in BF16
	NWeights int64        `json:"n_weights"`
	Tensors  []UnitTensor `json:"tensors,omitempty"` // in encoding order
	// other tools may choose another code (docs/format.md §5.1)
	TieBroken bool  `json:"limiter_tie,omitempty"`
	CodedBits int64 `json:"coded_bits,omitempty"` // length of the coded exponents
	// how many weights have which; nil for a unit in BF16
	Exponents *Exponents `json:"exponents,omitempty"`
}

// Exponents counts a unit's weights by exponent: Counts[i] have exponent First+i.
type Exponents struct {
	First  int      `json:"first"`
	Counts []uint64 `json:"counts"`
}

// UnitTensor is one weight of a unit.
type UnitTensor struct {
	Name  string  `json:"name"` // in the output
	Shape []int64 `json:"shape"`
	// SourceDType is F32 where the source holds the tensor as F32 and the lower half of every
	// weight is zero; else empty.
	SourceDType string `json:"source_dtype,omitempty"`
}

// Kind is the kind of an output file.
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

// OutputFile is one file of the repo. The manifest itself is not listed.
type OutputFile struct {
	Path   string `json:"path"`
	Kind   Kind   `json:"kind"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// File is what the file is known by.
func (f OutputFile) File() names.File {
	return names.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256}
}

// Alias is a tensor of the source that is not stored because another one has the same bits.
type Alias struct {
	Name string `json:"name"`
	Of   string `json:"of"`
}

// Rename is a tensor whose name differs between source and output.
type Rename struct {
	Source string `json:"source"`
	Name   string `json:"name"`
}

// Methods of a verification.
const (
	MethodCPU = "cpu" // always
	MethodGPU = "gpu" // as well, where there is one
)

// Verification is one check that was carried out.
type Verification struct {
	Method   string `json:"method"`
	Decoder  string `json:"decoder"`          // which decoder, in words
	Device   string `json:"device,omitempty"` // model of the GPU
	NUnits   int64  `json:"n_units"`          // decoded from the stored bytes
	NTensors int64  `json:"n_tensors"`        // compared with the source, copied ones included
	NWeights int64  `json:"n_weights"`        // of units, all 16 bits compared and equal
	// NExactF32 counts F32 weights of the source whose lower half was read and found to be zero.
	NExactF32 int64 `json:"n_exact_f32,omitempty"`
}

// AddVerified adds up what was verified, by method.
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

// ByGPU returns what a GPU has verified.
func ByGPU(list []Verification) (gpu Verification) {
	for _, v := range list {
		if v.Method == MethodGPU {
			gpu = v
		}
	}
	return gpu
}

// Marshal checks the manifest and returns its JSON: UTF-8, two-space indent, keys in the order of
// docs/manifest.md, final newline. Lists that every manifest has are written as [] where they are
// empty.
func (m *Manifest) Marshal() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	c := *m
	c.Source.Files = append([]SourceFile{}, m.Source.Files...)
	c.Units = append([]Unit{}, m.Units...)
	c.Outputs = append([]OutputFile{}, m.Outputs...)
	c.Verification = append([]Verification{}, m.Verification...)
	b, err := indented(&c)
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	return numberList.ReplaceAllFunc(b, onOneLine), nil
}

// indented is the JSON of a file for people and programs: two-space indent, <, > and & as they are,
// final newline.
func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

// numberList matches an indented list of numbers. It matches nothing inside a string, since JSON
// strings have no line ends.
var numberList = regexp.MustCompile(`\[\n +\d+(?:,\n +\d+)*\n +\]`)

// onOneLine joins the lines of a number list, since people read shapes too.
func onOneLine(list []byte) []byte {
	numbers := bytes.Fields(list[1 : len(list)-1])
	return fmt.Appendf(nil, "[%s]", bytes.Join(numbers, []byte(" ")))
}

// ParseManifest reads and checks a manifest of at most [MaxManifestBytes] within a memory budget; 0
// is no budget. It ignores members that it does not know; a newer schema version is an error. The
// manifest that it returns is consistent in itself; only verify can tell whether it is true.
func ParseManifest(data []byte, memory int64) (*Manifest, error) {
	objects, values := within(memory, maxObjects, 1024), within(memory, maxValues, 128)
	if err := python.Bounded(data, int(objects), int(values)); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	m := &Manifest{}
	err := python.Unmarshal(data, m)
	if m.Schema > SchemaVersion { // the first member: what follows may be anything
		return nil, fmt.Errorf(
			"read manifest: schema version %d is newer than this program, which reads up to %d",
			m.Schema, SchemaVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return m, nil
}
