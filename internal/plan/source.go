package plan

import (
	"cmp"
	"errors"
	"slices"

	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/safetensors"
)

// MaxFiles is how many files a model may have.
const MaxFiles = 100_000

// Source is all that a plan is made from. Nothing in it is trusted.
type Source struct {
	ID     string // repo id, or the name of the local folder or file; part of the digest
	Commit string // pinned commit; empty for a local source
	// the one weight file, if the source's own path names it; Options.WeightFile wins
	WeightFile string
	Files      []File // every file of the source, in any order
	// the headers of the files that Survey.WeightFiles returned, in that order
	Weights    []WeightFile
	Index      []byte // the file Survey.Index; nil when that is empty
	Config     []byte // the file Survey.Config; nil when that is empty
	ModelIndex []byte // the file Survey.ModelIndex; nil when that is empty
	RootConfig []byte // the file Survey.RootConfig; nil when that is empty
}

// File is one file of the source, or one that is copied. Paths use forward slashes.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// what pins the content: sha256 or blob id; empty if unknown
	ETag string `json:"etag,omitempty"`
}

// WeightFile is a safetensors file that is converted, with its header.
type WeightFile struct {
	File
	Header *safetensors.Header
}

// Options change what a plan decides. The zero value lets the source and the catalog decide.
type Options struct {
	PatternDict catalog.PatternDict // overrides the catalog
	// catalog id or published DF11 repo whose dict is reproduced; beside PatternDict, whose names
	// and ties apply
	Like   string
	Layout catalog.Layout // overrides the layout that the source suggests
	// folder of a diffusers pipeline to convert; "" = transformer, else unet
	Component string
	// the one weight file to convert, for repos that hold several single files
	WeightFile string
	ExactF32   bool // take F32 weights that turn out to be exact BF16
}

// reading is a source with what its small files say.
type reading struct {
	src    Source
	opt    Options
	survey *Survey
	cfg    *catalog.Config
	facts  catalog.Facts // of the stated class
}

// read surveys the source again, and checks that the caller brought the files that the survey asks
// for. It refuses a source that is quantized, or DF11 already.
func read(src Source, opt Options) (*reading, error) {
	opt.WeightFile = cmp.Or(opt.WeightFile, src.WeightFile)
	survey, err := Look(src.Files, opt)
	if err != nil {
		return nil, err
	}
	want, err := survey.WeightFiles(src.Index)
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
	r := &reading{src: src, opt: opt, survey: survey, cfg: cfg, facts: cfg.Facts()}
	return r, refuseForeign(cfg, root)
}
