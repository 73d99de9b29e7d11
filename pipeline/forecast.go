package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/fits"
	"github.com/df11-convert/df11-convert/internal/hubrules"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// A Forecast is what a conversion would do: its plan, the estimated size of the result, and what
// making it takes. Its JSON is that of the command, docs/output.schema.json.
type Forecast struct {
	Source  string `json:"source"`
	Commit  string `json:"commit,omitempty"`
	Private bool   `json:"private"`
	Gated   string `json:"gated,omitempty"`
	Closed  string `json:"closed,omitempty"` // why the target will be private
	// Original is the repo that a local source is a copy of, and its commit, if they were compared.
	Original string `json:"original,omitempty"`
	Bytes    int64  `json:"source_bytes"`
	Local    bool   `json:"-"`
	// SourceFiles counts the source's files with weights.
	SourceFiles int `json:"-"`

	Layout     string `json:"layout"`
	Entry      string `json:"entry,omitempty"` // of the catalog
	Provenance string `json:"provenance"`      // of the pattern dict
	// PatternDict is an object whose order counts.
	PatternDict json.RawMessage `json:"pattern_dict"`
	Units       []PlannedUnit   `json:"units"`
	Plain       []PlainTensor   `json:"uncompressed"` // largest first
	PlainBytes  int64           `json:"-"`
	// Aliases lists tied tensors, which are stored once. AliasBytes is their size.
	Aliases    []string `json:"aliases,omitempty"`
	AliasBytes int64    `json:"-"`
	LeftOut    []string `json:"left_out,omitempty"` // tensors; a warning has the reason
	Files      int      `json:"output_files"`       // with weights
	// Gain says in one line how much smaller the result is, and what stays BF16.
	Gain     string   `json:"-"`
	Estimate Estimate `json:"estimate"`
	Needs    Needs    `json:"needs"`
	GPUs     []Fit    `json:"gpus"`
	Picture  string   `json:"picture"` // both sizes, for a page
	// Published lists DF11 repos of the model, by their cards.
	Published []string `json:"published,omitempty"`
	// ResultFiles lists all files of the result, by path.
	ResultFiles []ResultFile `json:"files"`
	Copied      []string     `json:"copied"`         // files that come along unchanged
	Left        []string     `json:"left,omitempty"` // files of a folder that stay there
	// Official is what For: "dfloat11" would make, if that differs and the official loader may load
	// it.
	Official *Alternative `json:"for_dfloat11,omitempty"`
	// Differences says where the result differs from the official route, and why.
	Differences []string `json:"differences,omitempty"`
	Warnings    []string `json:"warnings,omitempty"` // what may go wrong
	Readers     []Reader `json:"readers,omitempty"`
}

// An Alternative is another result of the same source.
type Alternative struct {
	Bytes int64  `json:"output_bytes"`
	Loads string `json:"loads"`
}

// A PlannedUnit is a module that may be compressed.
type PlannedUnit struct {
	Path    string `json:"path"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
	DF11    int64  `json:"df11_bytes"`
	BF16    string `json:"stays_bf16,omitempty"` // why: an encoder.Reason
	Why     string `json:"why,omitempty"`        // the same in words
}

// A PlainTensor is a tensor that stays uncompressed.
type PlainTensor struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	Bytes int64   `json:"bytes"`
	Why   string  `json:"why"`
}

// A ResultFile is a file that a conversion makes.
type ResultFile struct {
	Path string `json:"path"`
	// Kind is "weights", "copied" (unchanged from the source), "written" (by the conversion), or
	// "hub" (written by the Hub into a new repo, and not into a folder).
	Kind string `json:"kind"`
	// Bytes is the file's size: estimated for the manifest, and for weights, unless Estimate.Exact
	// is set. It's nil if no one knows it before the file is written.
	Bytes *int64 `json:"bytes,omitempty"`
}

// An Estimate is the size of the result, estimated from samples of the weights.
type Estimate struct {
	OutputBytes  int64 `json:"output_bytes"`  // all output files with their headers
	SampledBytes int64 `json:"sampled_bytes"` // read from the source; 0 if sampling was off
	Exact        bool  `json:"exact"`         // every weight was read, so sizes are exact
	// AliasBytes counts bytes of tied tensors that were compared and equal.
	AliasBytes int64 `json:"-"`
	// EmptyBits counts the lowest bits of the mantissa that are 0 in all weights that were read.
	EmptyBits int `json:"empty_mantissa_bits"`
}

// Needs are what a conversion takes: transfers, as far as the result's size is known, and bounds on
// disk and memory, in bytes.
type Needs struct {
	// Download is 0 for a local source. Upload assumes a push. It adds up the files whose size is
	// known or estimated; the card and its picture aren't among them.
	Download int64 `json:"download_bytes"`
	Upload   int64 `json:"upload_bytes"`
	// Disk bounds a conversion into a folder, including the folder's files. DiskPush bounds one
	// with only Push.
	Disk     int64 `json:"disk_bytes"`
	DiskPush int64 `json:"disk_push_bytes"`
	// DiskLeast is the smallest Options.Disk that works with only Push, and what must be free.
	// DiskFolderLeast is the smallest one that works for a folder, whose own files don't count.
	// DiskFolderFree is what must be free for a folder, with its files.
	DiskLeast       int64 `json:"disk_least_bytes"`
	DiskFolderLeast int64 `json:"disk_folder_least_bytes"`
	DiskFolderFree  int64 `json:"disk_folder_free_bytes"`
	// Memory bounds buffers, tables, and spools in memory.
	Memory int64 `json:"memory_bytes"`
}

// A Fit says which forms of a model fit GPUs of one size.
type Fit struct {
	N    int64 `json:"n"`   // GPUs that share the model
	GiB  int64 `json:"gib"` // of each
	BF16 bool  `json:"bf16_fits"`
	DF11 bool  `json:"df11_fits"`
	// The longest context that fits next to the weights, in tokens. It's 0 if the weights don't fit
	// or the config doesn't say how much a token takes.
	BF16Context int64 `json:"bf16_context,omitempty"`
	DF11Context int64 `json:"df11_context,omitempty"`
	// What must fit next to the weights: sequences, each with that many tokens of context. They are
	// 0 if only the weights count, as for a config that doesn't say how much a token takes. Limit
	// is the largest context that the config allows, or 0 if it doesn't say.
	Context   int64 `json:"context,omitempty"`
	Sequences int64 `json:"sequences,omitempty"`
	Limit     int64 `json:"context_limit,omitempty"`
}

// String returns the GPUs, what they have to hold besides the weights, and what fits: "24 GB with
// 400 tokens of context: DF11 fits, BF16 doesn't fit".
func (f Fit) String() string {
	if f.Limit > 0 && f.Context > f.Limit { // the model ends there, not the memory
		f.DF11Context, f.BF16Context = 0, 0
	}
	return fmt.Sprintf("%s%s: DF11 %s, BF16 %s", fits.Fit(f), f.question(),
		fit(f.DF11, f.DF11Context), fit(f.BF16, f.BF16Context))
}

// question returns what must fit next to the weights, or "" if only these count.
func (f Fit) question() (text string) {
	switch {
	case f.Context == 0:
		return ""
	case f.Sequences > 1:
		text = fmt.Sprintf(" with %s sequences of %s of context", human.Grouped(f.Sequences),
			human.Count(f.Context, "token"))
	default:
		text = fmt.Sprintf(" with %s of context", human.Count(f.Context, "token"))
	}
	if f.Limit > 0 && f.Context > f.Limit {
		text += fmt.Sprintf(" (the model's limit is %s)", human.Grouped(f.Limit))
	}
	return text
}

// A Reader says whether a program loads the result.
type Reader struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Loads   string `json:"loads"` // "yes", "no", or "untested"
	// Why is the rule that fails, or the condition under which it loads.
	Why string `json:"why,omitempty"`
}

func newForecast(o *opened, size *budget.Estimate, needs budget.Needs, on GPUQuestion) *Forecast {
	m, p := o.model, o.plan
	f := &Forecast{
		Source: m.ID, Commit: m.Commit, Private: m.Private, Gated: m.Gated, Closed: m.Closed(),
		Bytes: p.SourceBytes(), Local: m.Local, SourceFiles: len(p.Source().Weights),
		Layout: string(p.Layout), Entry: p.Entry, Provenance: p.Provenance,
		PatternDict: json.RawMessage(p.PatternDict.JSON("", "")), Files: len(p.OutputFiles),
		Estimate: Estimate{OutputBytes: size.OutputBytes, SampledBytes: size.SampledBytes,
			Exact: size.Exact, AliasBytes: size.AliasBytes, EmptyBits: size.EmptyBits},
		Needs: newNeeds(&needs), Plain: []PlainTensor{}, PlainBytes: p.PlainBytes(),
		Official: o.official, Differences: p.Differences, Warnings: slices.Clone(p.Warnings),
	}
	if m.Local && m.Origin != nil {
		f.Original = m.Origin.Repo + "@" + m.Origin.Commit
	}
	for _, r := range p.Readers {
		f.Readers = append(f.Readers, Reader{r.Name, r.Version, string(r.Loads), r.Why})
	}
	f.Copied, f.Left = copiedPaths(p.Carried), p.Stay
	f.ResultFiles = resultFiles(o.model, p, size.Files)
	for _, x := range f.ResultFiles {
		if x.Bytes != nil {
			f.Needs.Upload += *x.Bytes
		}
	}
	plain := slices.Clone(p.Remainder)
	for i, u := range p.Units {
		e := size.Units[i]
		unit := PlannedUnit{Path: u.Path, Tensors: len(u.Attrs), Bytes: u.NBytes(), DF11: e.Bytes, BF16: e.BF16}
		if e.BF16 != "" {
			unit.Why = "the module " + metadata.ReasonText(e.BF16)
		}
		f.Units = append(f.Units, unit)
		plain = append(plain, u.Siblings...)
	}
	for _, t := range plain {
		f.Plain = append(f.Plain,
			PlainTensor{t.Name, t.Shape, t.Length, whyPlain(t, p)})
	}
	slices.SortStableFunc(f.Plain,
		func(a, b PlainTensor) int { return cmp.Compare(b.Bytes, a.Bytes) })
	refused, advised := budget.HubProblems(p, size.Files)
	for _, r := range refused {
		f.Warnings = append(f.Warnings, "--push will be refused: "+r.Text+"; "+r.Hint.String())
	}
	if !names.NamesRepo(m.Name) {
		f.Warnings = append(f.Warnings, human.Message("--push needs --repo-id ORG/NAME: the Hub takes no repo "+
			"named %q", m.Name+names.ResultEnd))
	}
	if f.Closed != "" {
		advised = append(advised, hubrules.CheckPrivate(f.Needs.Upload)...)
	}
	for _, a := range advised {
		f.Warnings = append(f.Warnings, a.Text)
	}
	f.Warnings = append(f.Warnings, cardWarnings(o.model)...)
	f.Warnings = append(f.Warnings, o.model.Discloses(p)...)
	for _, a := range p.Aliases {
		f.AliasBytes += a.Tensor.Length
		f.Aliases = append(f.Aliases, a.Tensor.Source+" = "+a.Of.Source)
	}
	for _, t := range p.Dropped {
		f.LeftOut = append(f.LeftOut, t.Source)
	}
	for _, x := range f.gpus(p, on, m.Listing.Config) {
		f.GPUs = append(f.GPUs, Fit(x))
		if on.Context > 0 && x.Context == 0 {
			f.Warnings = append(f.Warnings, "the config doesn't say how much memory a token of "+
				"context takes, so only the weights count for the GPU")
		}
	}
	f.Gain, f.Picture = f.gain(o.model, p), f.picture(p)
	return f
}

// resultFiles lists the files of a result. sizes are those of the weight files in the plan's order.
func resultFiles(m *model.Model, p *plan.Plan, sizes []int64) (list []ResultFile) {
	add := func(path, kind string, nBytes int64) {
		list = append(list, ResultFile{path, kind, &nBytes})
	}
	for i, o := range p.OutputFiles {
		add(o.Path, "weights", sizes[i])
	}
	for _, c := range p.AllCopied() {
		add(c.Path, "copied", c.Size)
	}
	for _, path := range p.SideFiles() {
		if b := madeOfPlan(m, p, path); b != nil {
			add(path, "written", int64(len(b)))
		} else if path == names.Manifest {
			add(path, "written", manifestBytes(m, p))
		} else {
			list = append(list, ResultFile{Path: path, Kind: "written"})
		}
	}
	if !slices.ContainsFunc(list, func(f ResultFile) bool { return f.Path == names.Attributes }) {
		list = append(list, ResultFile{Path: names.Attributes, Kind: "hub"})
	}
	slices.SortFunc(list, func(a, b ResultFile) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// manifestBytes estimates the size of the manifest.
func manifestBytes(m *model.Model, p *plan.Plan) int64 {
	return metadata.ManifestBytes(p, m.Original().Listing.Weights)
}

// madeOfPlan returns a side file that depends only on the plan, and nil for any other.
func madeOfPlan(m *model.Model, p *plan.Plan, path string) []byte {
	switch path {
	case p.RemainderIndex:
		return metadata.RemainderIndex(p)
	case p.ConfigPath():
		b, _ := metadata.Config(p, p.Version(), m.Listing.Config) // convert has the error
		return b
	}
	return nil
}

// newNeeds returns the needs of a conversion without the upload.
func newNeeds(n *budget.Needs) Needs {
	return Needs{Download: n.Download, Disk: n.Disk, DiskPush: n.DiskPush, DiskLeast: n.DiskLeast,
		DiskFolderLeast: n.DiskFolderLeast, DiskFolderFree: n.DiskFolderFree, Memory: n.Memory}
}

// gain returns, in one line, how much smaller than BF16 the df11 bytes are, and what stays BF16.
// Unless exact is set, df11 is an estimate. A manifest that adds more than 1% is mentioned: it
// holds the headers of the source.
func gain(m *model.Model, p *plan.Plan, df11 int64, exact bool) string {
	bf16 := bf16Bytes(p)
	less := fmt.Sprintf("%.0f%% smaller", 100-human.Percentage(df11, bf16))
	if stays := p.Stays(); stays != "" {
		less += "; " + stays
	}
	before, after := human.Bytes(bf16), human.Bytes(df11)
	if bf16 < p.KeptBytes() {
		before += " in BF16"
	}
	if !exact {
		after = "about " + after
	}
	if p.HoldsParameters() {
		after += " for " + plan.OwnReader
	}
	line := fmt.Sprintf("%s → %s (%s)", before, after, less)
	if n := manifestBytes(m, p); n > max(df11/100, 1_000_000) {
		line += fmt.Sprintf("; %s adds about %s", names.Manifest, human.Bytes(n))
	}
	if p.Refused() != nil {
		line += "; no known loader takes it"
	}
	return line
}

// gain returns what the conversion would gain, in one line. If the result needs df11, it adds what
// the official loader would take instead.
func (f *Forecast) gain(m *model.Model, p *plan.Plan) string {
	line := gain(m, p, f.Estimate.OutputBytes, f.Estimate.Exact)
	switch other := f.Official; {
	case !p.HoldsParameters():
		return line
	case other == nil:
		return line + "; dfloat11 can't load this model"
	default:
		return fmt.Sprintf("%s, or about %s with --for dfloat11 (%.0f%% smaller)", line,
			human.Bytes(other.Bytes), 100-human.Percentage(other.Bytes, bf16Bytes(p)))
	}
}

// bf16Bytes returns the size of what is converted of the source, counting exact F32 as BF16.
func bf16Bytes(p *plan.Plan) int64 { return p.KeptBytes() - 2*spans.NExactF32(p) }

// picture draws both sizes for a page.
func (f *Forecast) picture(p *plan.Plan) string {
	r := &describe.Report{BF16Bytes: bf16Bytes(p), DF11Bytes: f.Estimate.OutputBytes}
	for _, u := range f.Units {
		if u.BF16 == "" {
			r.Weights += u.Bytes / 2
			r.Parts.Exponents += u.DF11 - u.Bytes/2
		}
	}
	r.Parts.SignMantissa = r.Weights
	r.Parts.Unchanged = max(0, r.DF11Bytes-r.Weights-r.Parts.Exponents)
	return charts.Drawing(r)
}

// gpus returns the GPUs that hold at least one form of the model; with a question, only its GPU.
func (f *Forecast) gpus(p *plan.Plan, q GPUQuestion, config []byte) []fits.Fit {
	w := fits.Weights{BF16: bf16Bytes(p), DF11: f.Estimate.OutputBytes,
		Largest: p.LargestModule(func(i int) bool { return f.Units[i].BF16 != "" })}
	if q.GiB > 0 {
		return []fits.Fit{w.On(1, q.GiB, fits.ReadCache(config), q.Context, max(1, q.Sequences))}
	}
	return w.Table()
}

// fit returns whether one form fits, and with how much context.
func fit(ok bool, longest int64) string {
	text := "doesn't fit"
	if ok {
		text = "fits"
	}
	if longest > 0 {
		text += fmt.Sprintf(" (at most %s of context)", human.Count(longest, "token"))
	}
	return text
}

// whyPlain returns why a tensor stays uncompressed.
func whyPlain(t plan.Tensor, p *plan.Plan) string {
	switch {
	case t.DType != "BF16":
		return string(t.DType) + ": DF11 holds BF16 only"
	case t.IsFusedExperts():
		return p.WhyFused()
	case len(t.Shape) != 2:
		return "norm, bias, or scale: DF11 compresses only matrices of linear and embedding modules"
	case p.TiedEmbeddings && strings.Contains(t.Name, "embed"):
		return "embedding, shared with the head: stored once, in BF16"
	}
	return "in no pattern of the dict"
}

// cardWarnings says what the Hub wouldn't take of the source's card, and what becomes of it.
func cardWarnings(m *model.Model) (list []string) {
	front, err := m.Card()
	if err != nil {
		return []string{"--push will be refused: README.md: " + err.Error() + "; name the license with --license ID, such as mit"}
	}
	for _, did := range append(front.Clean(), m.CardLeftOut()...) {
		list = append(list, "README.md: "+did)
	}
	return list
}
