package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/df11-convert/df11-convert/hub"
	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/convert"
	"github.com/df11-convert/df11-convert/internal/hint"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/usage"
	"github.com/df11-convert/df11-convert/verify"
)

// VerifyOptions say what a DF11 model is compared with, and how far. The zero value takes the
// original that the model names, and the level that reads least to show that both are equal.
type VerifyOptions struct {
	Means
	// Recipe says how the original is read, as far as the DF11 model doesn't show it.
	Recipe Recipe
	// Against is the original: a Hub repo, a folder, or a .safetensors file.
	Against string
	// Level is how far to go. If it's "", a proof that fails is followed by a comparison that finds
	// the weight.
	Level Level
	// WorkDir holds temporary files; "" is the system's.
	WorkDir string
}

// A Level is how much of a DF11 model is verified.
type Level string

// The levels, from cheap to complete.
const (
	// LevelStructure checks known hashes, headers, arrays, tables, positions, and completeness. It
	// never shows equality.
	LevelStructure Level = "structure"
	// LevelProof rebuilds the original files, and compares their SHA-256 with the published one. It
	// reads no weights of the original.
	LevelProof Level = "proof"
	// LevelFull compares all 16 bits of every weight with the original.
	LevelFull Level = "full"
)

// Levels lists all levels, from cheap to complete.
func Levels() []Level { return []Level{LevelStructure, LevelProof, LevelFull} }

// A VerifyReport is what a verification found.
type VerifyReport struct {
	Model   string `json:"model"`
	Commit  string `json:"commit,omitempty"`
	Against string `json:"against,omitempty"`
	// AgainstCommit is the original's commit, or "" for a local original. AgainstOnMain says
	// whether main has the same weight files. It's set only if the model itself named the original.
	AgainstCommit string `json:"against_commit,omitempty"`
	AgainstOnMain *bool  `json:"against_on_main,omitempty"`
	// AgainstFile is the one weight file of the original, if its name is unusual. Component is the
	// folder of a pipeline.
	AgainstFile string   `json:"against_file,omitempty"`
	Component   string   `json:"component,omitempty"`
	Layout      string   `json:"layout"`
	Level       Level    `json:"level"`
	OK          bool     `json:"-"` // no fault in the model or the pair
	Equal       Equality `json:"equal"`

	// Damage is what is wrong with the model alone, and Difference with the pair; nil is nothing.
	Damage     *Error `json:"-"`
	Difference *Error `json:"-"`
	// NoOriginal says why the model was compared only with its manifest, although the level asks
	// for an original: no one names it, or offline, it isn't in the cache. Level is LevelStructure
	// then.
	NoOriginal *Error `json:"-"`
	// Located says that Damage is a wrong hash, and Difference the weight that makes it wrong.
	Located bool `json:"-"`
	// MadeFrom is the original that the manifest names, if the pair differs and the manifest lists
	// other source files than the pair's original has. Otherwise it's "".
	MadeFrom string `json:"made_from,omitempty"`

	// Units counts the modules in DF11, BF16 those that are stored unchanged, and Tensors the
	// copied ones. Unfilled has the reason for each module that no known reader gives its weights.
	Units    int      `json:"units"`
	BF16     int      `json:"units_bf16"`
	Tensors  int      `json:"tensors"`
	Unfilled []string `json:"unfilled,omitempty"`

	// FilesCompared says that all files next to the weights were compared. Beside lists those that
	// differ, that the original doesn't have, or that the model lacks.
	FilesCompared bool        `json:"-"`
	Beside        []OtherFile `json:"beside"`
	// LeftOut lists the original's files that the model lacks because no conversion copies them.
	LeftOut []Skipped `json:"left_out,omitempty"`
	// TensorsLeftOut are the names of the original's tensors that no conversion stores, because
	// they are of other models.
	TensorsLeftOut []string `json:"tensors_left_out,omitempty"`
	// NotCompared lists the model's files that nothing was compared with, because a conversion or a
	// Hub writes them.
	NotCompared []string `json:"not_compared,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`

	// Weights counts the weights of units in DF11, all compared or hashed. It's 0 if the level does
	// neither, or if an earlier check found a fault.
	Weights int64 `json:"weights"`
	Files   int   `json:"files_rebuilt,omitempty"`
	// Published says that the SHA-256 of every rebuilt file was published, not computed here.
	Published bool `json:"sha256_published,omitempty"`
	// DecodesAlone says whether decode restores the original's files without the original. Nil: the
	// level doesn't compare the weights, or there is a fault. WhyNotAlone says why it doesn't.
	DecodesAlone *bool  `json:"decodes_alone,omitempty"`
	WhyNotAlone  string `json:"why_not_alone,omitempty"`
	// Verified says what compared the weights; nil if the level doesn't.
	Verified []Verification `json:"verified,omitempty"`
}

// An OtherFile is a file of a DF11 model or its original that is not the same in both. Its text is
// its path.
type OtherFile struct {
	Path string
	How  How
}

// MarshalText returns the path.
func (o OtherFile) MarshalText() ([]byte, error) { return []byte(o.Path), nil }

// How says how a file isn't the same.
type How string

// The values of How.
const (
	Changed How = back.Changed // both have it
	Added   How = back.Added   // the original doesn't have it
	Missing How = back.Missing // the model lacks it
)

// A Skipped is a file of the original that isn't copied.
type Skipped struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	// Lost says that a reader of the original opens it.
	Lost bool `json:"lost,omitempty"`
}

// An Equality says whether this process has compared all weights of a pair and found them the same.
// Only Verify makes an Equality that says so: a manifest, a card, and an earlier run's report
// can't.
type Equality struct{ shown bool }

// Shown reports whether the weights are the same.
func (e Equality) Shown() bool { return e.shown }

// MarshalJSON returns true or false.
func (e Equality) MarshalJSON() ([]byte, error) { return strconv.AppendBool(nil, e.shown), nil }

// Verify checks a DF11 model by itself, compares it with its original, and compares the files next
// to its weights. It doesn't matter who made the model. If no one names the original, or if it
// isn't in the cache and the network is off, Verify compares the model with its manifest instead.
// An error with a report is the model's fault, or else the pair's, or else [ErrNoOriginal]. An
// error without a report says that the verification could not run.
func Verify(ctx context.Context, df11 string, opt VerifyOptions) (*VerifyReport, error) {
	r, err := verifyPair(ctx, df11, opt)
	if r == nil || ctx.Err() != nil {
		return nil, opt.ended(ctx, err)
	}
	report := verifyReportOf(r)
	if fault := report.fault(); fault != nil {
		return report, fault
	}
	return report, nil
}

func verifyPair(ctx context.Context, df11 string, opt VerifyOptions) (r *convert.VerifyReport, err error) {
	if levels := []Level{"", LevelStructure, LevelProof, LevelFull}; !slices.Contains(levels, opt.Level) {
		return nil, usage.Errorf("level %q: want one of %q", opt.Level, levels[1:])
	}
	if opt.GPU == verify.GPURequire {
		if opt.Level = cmp.Or(opt.Level, LevelFull); opt.Level != LevelFull {
			return nil, usage.Errorf("--gpu require needs --level full: no other level decodes on the GPU")
		}
	}
	s, err := opt.Means.begin(budget.ForReading)
	if err != nil {
		return nil, err
	}
	defer s.close()
	defer func() {
		if err = s.judged(err); r != nil && !model.Exists(df11) {
			if unsure := s.judged(r.Damage); errors.Is(unsure, hub.ErrOffline) {
				r, err = nil, unsure
			}
		}
	}()
	if _, err := s.planOptions(ctx, opt.Recipe); err != nil { // the original may not be read
		return nil, err
	}
	d, err := s.openDF11(ctx, df11)
	if wraps[*model.InvalidError](err) { // too damaged to open
		return &convert.VerifyReport{Model: df11, Against: opt.Against,
			Level: convert.LevelStructure, Faults: convert.Faults{Damage: err}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	repo, _ := d.Original()
	if repo+opt.Against == "" {
		return s.verifyAlone(ctx, d, opt.Level, noOriginal(d))
	}
	src, err := s.openOriginal(ctx, d, opt.Against, opt.Recipe)
	if err = s.judged(err); opt.Against == "" && errors.Is(err, hub.ErrOffline) {
		return s.verifyAlone(ctx, d, opt.Level, fmt.Errorf("%s: %w, %s: %w", d.Name, errNotHere, repo, err))
	}
	if err != nil {
		return nil, err
	}
	defer src.Close()
	pair := src.pair(d)
	job := convert.VerifyOptions{
		Pair: pair, Level: cmp.Or(convert.Level(opt.Level), convert.Cheapest(pair)),
		Locate: opt.Level == "", Chosen: opt.Against == "", Means: s.means(),
		// A folder with a known name could be another user's.
		WorkDir: cmp.Or(opt.WorkDir, os.TempDir()),
	}
	if job.Level == convert.LevelFull {
		if err := s.openGPU(&job.Means); err != nil {
			return nil, err
		}
	}
	stop := s.watch()
	r, err = convert.Verify(ctx, job)
	stop(err)
	return r, err
}

// verifyAlone compares a model with its manifest. why says why there's no original.
func (s *session) verifyAlone(ctx context.Context, d *model.DF11, level Level,
	why error) (*convert.VerifyReport, error) {
	stop := s.watch()
	r, err := convert.VerifyAlone(ctx, d, convert.Level(level), s.means())
	stop(err)
	switch {
	case r == nil:
	case level != LevelStructure:
		r.NoOriginal = why
	case errors.Is(why, errNotHere):
		r.Warnings = append(r.Warnings, why.Error())
	}
	return r, err
}

// verifyReportOf returns a report in plain types.
func verifyReportOf(r *convert.VerifyReport) *VerifyReport {
	v := &VerifyReport{
		Model: r.Model, Commit: r.Commit, Against: r.Against, AgainstCommit: r.AgainstCommit,
		AgainstOnMain: r.AgainstOnMain, AgainstFile: r.AgainstFile, Component: r.Component,
		Layout: string(r.Layout), Level: Level(r.Level), OK: r.OK, Equal: Equality{r.Equal.Shown()},
		MadeFrom: r.MadeFrom,
		Units:    r.Units, BF16: r.BF16, Tensors: r.Tensors, Unfilled: r.Unfilled,
		TensorsLeftOut: r.TensorsLeftOut,
		FilesCompared:  r.FilesCompared, Beside: []OtherFile{}, NotCompared: r.NotCompared,
		Warnings: r.Warnings,
		Weights:  r.Weights, Files: r.Files, Published: r.Published,
		Verified: verificationsOf(r.Verified), DecodesAlone: r.Alone,
	}
	if r.WhyNotAlone != nil {
		v.WhyNotAlone = r.WhyNotAlone.Error()
	}
	for _, f := range r.Beside {
		v.Beside = append(v.Beside, OtherFile{f.Path, How(f.How)})
	}
	for _, f := range r.LeftOut {
		v.LeftOut = append(v.LeftOut, Skipped(f))
	}
	v.Damage, v.NoOriginal = ErrorOf(r.Damage), ErrorOf(r.NoOriginal)
	switch isOther := wraps[*back.OtherError](r.Difference); {
	case r.Difference == nil:
	case r.MadeFrom != "" || isOther:
		v.Difference = ErrorOf(otherOriginal{r.Difference, r.MadeFrom})
	default:
		v.Difference = ErrorOf(differs{r.Difference})
	}
	v.Located = v.Level == LevelFull && v.Difference != nil && wraps[*back.HashError](r.Damage)
	if fault, h := v.fault(), originalHint(r); fault != nil && h != (hint.Hint{}) {
		fault.advise(h)
	}
	return v
}

// fault returns what ends a verification, or nil.
func (v *VerifyReport) fault() *Error {
	if v.Damage != nil && !v.Located {
		return v.Damage
	}
	return cmp.Or(v.Difference, v.NoOriginal)
}

// originalHint returns what to do if the model may not belong to the original.
func originalHint(r *convert.VerifyReport) hint.Hint {
	switch {
	case r.MadeFrom != "" || wraps[*back.OtherError](r.Difference):
		return hint.OtherOriginal
	case wraps[*back.HashError](r.Damage):
		return hint.Rotten
	case r.Against == "" && wraps[*back.RebuildError](r.Damage):
		return hint.NoOriginal
	case wraps[*back.RebuildError](r.Difference) && r.Damage == nil:
		return hint.Locate
	case r.Damage != nil || r.AgainstOnMain != nil: // the model names its original
	case r.Difference != nil && !wraps[*back.ComponentError](r.Difference):
		return hint.MaybeOther.With("original", r.Against)
	}
	return hint.Hint{}
}

// differs reports that a model's weights aren't those of its original.
type differs struct{ error }

func (e differs) Unwrap() error { return e.error }

// otherOriginal reports that a model differs from an original that it wasn't made from.
type otherOriginal struct {
	error
	madeFrom string // what its manifest names, if it names other files
}

func (e otherOriginal) Error() string {
	if e.madeFrom == "" {
		return e.error.Error()
	}
	return "made from " + e.madeFrom + ", by its manifest; " + e.error.Error()
}

func (e otherOriginal) Unwrap() error { return e.error }
