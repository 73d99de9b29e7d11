package plan

import (
	"cmp"
	"errors"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// MaxFiles is how many files a model may have.
const MaxFiles = 100_000

// A Source is everything that a plan is made from. Nothing in it is trusted.
type Source struct {
	ID     string // repo id, or the name of the local folder or file; part of the digest
	Commit string // pinned commit; empty for a local source
	// the one weight file, if the source's own path names it; Options.WeightFile wins
	WeightFile string
	Files      []File // every file of the source, in any order
	// Of are the paths of the weight files that those of this source are made of, such as
	// diffusers' for the one file of ComfyUI. It's nil if the source has its own. Behind are the
	// other files next to these, which readers of them open.
	Of     []string
	Behind []Skipped
	// which files of a local folder belong to the model; nil for a repo
	Folder *reader.Folder
	// Absent are files that can't be read and that no reader of the model opens: the source is read
	// offline, from a cache with holes.
	Absent []string
	Dir    string // Survey.Dir
	// the headers of the files that WeightSet.Files returned, in that order
	Weights    []WeightFile
	Index      []byte // the file WeightSet.Index; nil if that is ""
	Config     []byte // the file Survey.Config; nil if that is ""
	ModelIndex []byte // the file Survey.ModelIndex; nil if that is ""
	RootConfig []byte // the file Survey.RootConfig; nil if that is ""
}

// A File is a file of the source. Paths use forward slashes.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// SHA-256 or blob ID of the content, a sample of a local weight file, or "" if unknown
	ETag string `json:"etag,omitempty"`
}

// isPlain reports whether no tensor can be quantized: each is floating-point, a mask, or positions.
// isPlain returns false for a source without weight files.
func (s Source) isPlain() bool {
	isQuantized := func(t safetensors.Tensor) bool {
		return !isPlainFloat(t.DType) && t.DType != safetensors.I64 && t.DType != "BOOL"
	}
	holdsQuantized := func(w WeightFile) bool {
		return slices.ContainsFunc(w.Header.Tensors, isQuantized)
	}
	return len(s.Weights) > 0 && !slices.ContainsFunc(s.Weights, holdsQuantized)
}

// A WeightFile is a safetensors file to convert, with its header.
type WeightFile struct {
	File
	Header *safetensors.Header
}

// Options change what a plan decides. The zero value leaves all decisions to the source and the
// catalog.
type Options struct {
	PatternDict catalog.PatternDict // overrides the catalog
	// catalog ID or published DF11 repo whose dict to reproduce; with PatternDict, only its names
	// and ties apply
	Like   string
	Layout catalog.Layout // overrides the layout that the source suggests
	// folder of a diffusers pipeline to convert; "": transformer, or else unet
	Component string
	// the one weight file to convert, for repos that hold several single files
	WeightFile string
	ExactF32   bool // compress F32 weights whose values are all exact in BF16
	Unfilled   bool // accept a dict with units that no reader can fill
	// patterns of files of a local folder to copy, although no reader of the model opens them
	Include []string
	// the reader that must fill every unit: OfficialReader, or "" for any
	For string
	// Finished says that PatternDict is a finished model's. Then Like, if it's an entry that fits
	// the source, or else the entry that fits best, lends its names and ties.
	Finished bool
}

// WeightBytes returns the total size of the weight files.
func (s *Source) WeightBytes() int64 {
	return sum(s.Weights, func(w WeightFile) int64 { return w.Size })
}

// asked are the options that decide what a run publishes. Manifests store the SHA-256 of their
// JSON, so a member that is added later must be left out of it while it has its default.
type asked struct {
	PatternDict           catalog.PatternDict
	Like                  string
	Layout                catalog.Layout
	Component, WeightFile string
	ExactF32, Unfilled    bool
	Include               []string `json:",omitempty"`
	For                   string   `json:",omitempty"`
	License               string   `json:",omitempty"`
}

// Asked returns the SHA-256 of the options that decide what a run publishes, and of the license
// that its card gets. It returns "" if all of these have their defaults.
func (o Options) Asked(license string) string {
	sum := digest(asked{o.PatternDict, o.Like, o.Layout, o.Component, o.WeightFile, o.ExactF32, o.Unfilled,
		o.Include, o.For, license})
	if sum == digest(asked{}) {
		return ""
	}
	return sum
}

// A reading is a source and what its small files say. It never changes.
type reading struct {
	source Source
	opt    Options
	survey *Survey
	index  string // path of the index; "" if there is none
	// the path of each tensor's file, if the index names the weight files; else nil
	weightMap map[string]string
	cfg       *catalog.Config
	facts     catalog.Facts // of the stated class
	// facts of the class that an auto class builds; nil if that's the stated class
	built *catalog.Facts
}

// readSource surveys the source again, and checks that the caller brought the headers that the
// survey asks for. It refuses a source that is quantized or DF11.
func readSource(src Source, opt Options) (*reading, error) {
	opt.WeightFile = cmp.Or(opt.WeightFile, src.WeightFile)
	opt.Component = cmp.Or(opt.Component, src.Dir) // its weights are given, not those of another one
	survey, err := Look(src.Files, opt)
	if err != nil {
		return nil, err
	}
	set, err := survey.FindWeights(src.Config)
	if err != nil {
		return nil, err
	}
	want, weightMap, err := set.resolve(src.Index)
	if err != nil {
		return nil, err
	}
	isGiven := func(w File, given WeightFile) bool {
		return w.Path == given.Path && given.Header != nil
	}
	if !slices.EqualFunc(want, src.Weights, isGiven) {
		return nil, errors.New(
			"plan: the headers given are not those of the weight files that the survey names")
	}
	cfg, err := catalog.ReadConfig(survey.Config, src.Config)
	if err != nil {
		return nil, err
	}
	root, err := catalog.ReadObject(survey.RootConfig, src.RootConfig)
	if err != nil {
		return nil, err
	}
	src.Dir = survey.Dir
	r := &reading{src, opt, survey, set.Index, weightMap, cfg, cfg.Facts(), cfg.Built()}
	return r, refuseForeign(cfg, root, src.isPlain())
}

// cantFill says why no reader can fill the weights of modules as parts of a unit, or returns "". It
// asks the stated class and, if another one is built, that one.
func (r *reading) cantFill(inv *inventory, unit string, modules ...string) string {
	isParent := func(path string) bool { return inv.parents[path] }
	why := reader.CantFill(&r.facts, unit, modules, isParent)
	if why == "" && r.built != nil {
		why = reader.CantFill(r.built, unit, modules, isParent)
	}
	return why
}
