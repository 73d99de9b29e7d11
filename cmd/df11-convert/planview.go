package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/catalog"
	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/fits"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// forecast is what plan shows: a plan, the estimated size of the result, and what making it takes.
type forecast struct {
	plannedSource
	Layout      catalog.Layout      `json:"layout"`
	Entry       string              `json:"entry,omitempty"`
	Provenance  string              `json:"provenance"`
	PatternDict catalog.PatternDict `json:"pattern_dict"`
	Units       []plannedUnit       `json:"units"`
	Plain       []plainTensor       `json:"uncompressed"` // largest first
	Aliases     []string            `json:"aliases,omitempty"`
	LeftOut     []string            `json:"left_out,omitempty"` // tensors; a warning has the reason
	Files       int                 `json:"output_files"`       // with weights
	Estimate    *budget.Estimate    `json:"estimate"`
	Needs       budget.Needs        `json:"needs"`
	GPUs        []fits.Fit          `json:"gpus"`
	Picture     string              `json:"picture"`             // both sizes, for a page
	Published   []string            `json:"published,omitempty"` // DF11 repos, by their cards
	Copied      []string            `json:"copied"`              // files that come along unchanged
	Left        []string            `json:"left,omitempty"`      // files of a folder that stay there
	// what --for dfloat11 would make, if that differs and the official loader may load it
	Official *alternative `json:"for_dfloat11,omitempty"`
	plan.Notes

	plan  *plan.Plan
	local bool
}

// alternative is another result of the same source.
type alternative struct {
	Bytes int64        `json:"output_bytes"`
	Loads plan.Verdict `json:"loads"`
}

type plannedSource struct {
	Source  string `json:"source"`
	Commit  string `json:"commit,omitempty"`
	Private bool   `json:"private"`
	Gated   string `json:"gated,omitempty"`
	Closed  string `json:"closed,omitempty"` // why the target will be private
	Bytes   int64  `json:"source_bytes"`
}

// plannedUnit is a module that may be compressed.
type plannedUnit struct {
	Path    string `json:"path"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
	DF11    int64  `json:"df11_bytes"`
	BF16    string `json:"stays_bf16,omitempty"` // why
}

// plainTensor is a tensor that stays uncompressed.
type plainTensor struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	Bytes int64   `json:"bytes"`
	Why   string  `json:"why"`
}

func newForecast(o *opened, size *budget.Estimate, needs budget.Needs, gpu gpuQuestion) *forecast {
	m, p := o.model, o.plan
	f := &forecast{
		plannedSource: plannedSource{m.ID, m.Commit, m.Private, m.Gated, m.Closed(), p.SourceBytes()},
		Layout:        p.Layout, Entry: p.Entry, Provenance: p.Provenance,
		PatternDict: p.PatternDict, Files: len(p.OutputFiles), Estimate: size, Needs: needs,
		Plain: []plainTensor{}, Official: o.official, Notes: p.Notes, plan: p, local: m.Local,
	}
	f.Copied, f.Left = []string{}, p.Stay
	for _, c := range slices.Concat(p.Copied, p.Components) {
		f.Copied = append(f.Copied, c.Path)
	}
	plain := slices.Clone(p.Remainder)
	for i, u := range p.Units {
		e := size.Units[i]
		f.Units = append(f.Units, plannedUnit{u.Path, len(u.Attrs), 2 * u.NElems(), e.Bytes, e.BF16})
		plain = append(plain, u.Siblings...)
	}
	for _, t := range plain {
		f.Plain = append(f.Plain,
			plainTensor{t.Name, t.Shape, t.Length, whyPlain(t, p)})
	}
	slices.SortStableFunc(f.Plain,
		func(a, b plainTensor) int { return cmp.Compare(b.Bytes, a.Bytes) })
	refused, advised := budget.HubProblems(p, size.Files)
	f.Warnings = slices.Clone(f.Warnings)
	for _, r := range refused {
		f.Warnings = append(f.Warnings, "--push will be refused: "+r.Text+"; "+r.Hint)
	}
	for _, a := range advised {
		f.Warnings = append(f.Warnings, a.Text)
	}
	for _, a := range p.Aliases {
		f.Aliases = append(f.Aliases, a.Tensor.Source+" = "+a.Of.Source)
	}
	for _, t := range p.Dropped {
		f.LeftOut = append(f.LeftOut, t.Source)
	}
	f.GPUs, f.Picture = f.gpus(gpu, m.Listing.Config), f.picture()
	return f
}

// gain returns, in one line, how much smaller than BF16 the df11 bytes are, and what stays BF16.
// Unless exact is set, df11 is an estimate.
func gain(p *plan.Plan, df11 int64, exact bool) string {
	bf16 := bf16Bytes(p)
	less := fmt.Sprintf("%.0f%% smaller", 100-percentage(df11, bf16))
	if stays := p.Stays(); stays != "" {
		less += "; " + stays
	}
	return fmt.Sprintf("%s%s → %s%s%s (%s)", human.Bytes(bf16), choose(bf16 < p.SourceBytes(), " in BF16", ""),
		choose(exact, "", "about "), human.Bytes(df11),
		choose(p.HoldsParameters(), " for "+plan.OwnReader, ""), less)
}

// gain returns what the conversion would gain, in one line. If the result needs df11, it adds what
// the official loader would take instead.
func (f *forecast) gain() string {
	line := gain(f.plan, f.Estimate.OutputBytes, f.Estimate.Exact)
	switch other := f.Official; {
	case !f.plan.HoldsParameters():
		return line
	case other == nil:
		return line + "; dfloat11 can't load this model"
	default:
		return fmt.Sprintf("%s, or about %s with --for dfloat11 (%.0f%% smaller)", line,
			human.Bytes(other.Bytes), 100-percentage(other.Bytes, bf16Bytes(f.plan)))
	}
}

// bf16Bytes returns the size of the source, counting exact F32 as BF16.
func bf16Bytes(p *plan.Plan) int64 { return p.SourceBytes() - 2*spans.NExactF32(p) }

// basis returns what the estimate is based on, in words.
func (f *forecast) basis() string {
	switch {
	case f.Estimate.Exact:
		return "exact: all weights were read"
	case f.Estimate.SampledBytes == 0:
		return "assumes the usual ratio of trained weights"
	}
	return "estimated from " + human.Bytes(f.Estimate.SampledBytes) + " of the weights"
}

// aliasBasis says how far the plan has compared tied tensors.
func (f *forecast) aliasBasis() string {
	var all int64
	for _, a := range f.plan.Aliases {
		all += a.Tensor.Length
	}
	if n := f.Estimate.AliasBytes; n < all {
		return fmt.Sprintf("of %s, %s were compared so far; convert compares every bit",
			human.Bytes(all), human.Bytes(n))
	}
	return "compared now, and again by convert"
}

// picture draws both sizes for a page.
func (f *forecast) picture() string {
	r := &describe.Report{BF16Bytes: bf16Bytes(f.plan), DF11Bytes: f.Estimate.OutputBytes}
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

// print writes the forecast for people.
func (f *forecast) print(w io.Writer) {
	printf(w, "%s\n", f.gain())
	if n := f.Estimate.EmptyBits; n >= 4 {
		printf(w, "the lowest %d of 7 mantissa bits are 0 in every weight that was read: the weights "+
			"come from a smaller type, such as FP8, which takes less space than DF11\n", n)
	}
	fmt.Fprintln(w)
	t := newTable(w)
	t.row("source", "%s", f.Source)
	if f.Closed != "" {
		t.row("with --push", "the target will be private: %s", f.Closed)
	}
	if f.local {
		t.row("verify", "%s", unproved)
	}
	t.row("commit", "%s", f.Commit)
	if len(f.Published) > 0 {
		t.row("DF11 exists", "%s, according to its card; check with: df11-convert verify",
			human.List(f.Published))
	}
	t.row("layout", "%s", f.Layout)
	t.row("pattern dict", "%s", strings.TrimSpace(f.Entry+" "+f.Provenance))
	t.row("read", "%s in %s", human.Bytes(f.Bytes),
		count(len(f.plan.Source().Weights), "file"))
	t.row("write", "%s in %s (%s)", human.Bytes(f.Estimate.OutputBytes),
		count(len(f.plan.OutputFiles), "file"), f.basis())
	for _, g := range f.GPUs {
		t.row("GPU", "%s: DF11 %s, BF16 %s (10%% kept free)", g, fit(g.DF11, g.DF11Context),
			fit(g.BF16, g.BF16Context))
	}
	for _, x := range []struct {
		target             string
		bound, free, least int64
	}{{"with a folder as the target", f.Needs.Disk, f.Needs.DiskFolderFree, f.Needs.DiskFolderLeast},
		{"with --push alone", f.Needs.DiskPush, f.Needs.DiskLeast, f.Needs.DiskLeast}} {
		t.row("disk", "%s: takes at most %s; %s must be free, --disk at least %s", x.target,
			human.BytesUp(x.bound), human.BytesUp(x.free), human.BytesUp(x.least))
	}
	t.row("copied", "%s", human.List(f.Copied))
	t.row("memory", "at most %s", human.Bytes(f.Needs.Memory))
	t.row("upload", "%s with --push", human.Bytes(f.Needs.Upload))
	t.Flush()
	f.printUnits(w)
	f.printPlain(w)
	f.printRemarks(w)
}

// gpuQuestion is the GPU of --vram: its memory in GiB (0 if none is named), and the tokens and
// sequences that must fit next to the weights.
type gpuQuestion struct{ gib, context, batch int64 }

// gpus returns the GPUs that hold at least one form of the model; with --vram, only that GPU.
func (f *forecast) gpus(q gpuQuestion, config []byte) []fits.Fit {
	w := fits.Weights{BF16: bf16Bytes(f.plan), DF11: f.Estimate.OutputBytes,
		Largest: f.plan.LargestModule(func(i int) bool { return f.Units[i].BF16 != "" })}
	if q.gib > 0 {
		return []fits.Fit{w.On(1, q.gib, fits.ReadCache(config), q.context, q.batch)}
	}
	return w.Table()
}

// fit returns whether one form fits, and with how much context.
func fit(ok bool, longest int64) string {
	text := choose(ok, "fits", "doesn't fit")
	if longest > 0 {
		text += fmt.Sprintf(" (at most %s of context)", count(longest, "token"))
	}
	return text
}

// alike groups elements with the same key, in the order of their first ones.
func alike[T any](list []T, key func(T) string) (all [][]T) {
	at := map[string]int{}
	for _, x := range list {
		i, known := at[key(x)]
		if !known {
			i = len(all)
			at[key(x)], all = i, append(all, nil)
		}
		all[i] = append(all[i], x)
	}
	return all
}

var numbers = regexp.MustCompile(`\d+`)

// kind returns a unit's path without its numbers, such as "model.layers.*".
func (u plannedUnit) kind() string { return numbers.ReplaceAllString(u.Path, "*") }

// printUnits prints one line for each group of similar units.
func (f *forecast) printUnits(w io.Writer) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "modules\ttensors each\tBF16 each\tDF11 each\tratio\t\n")
	for _, group := range alike(f.Units, func(u plannedUnit) string {
		return fmt.Sprintln(u.kind(), u.Tensors, u.Bytes, u.BF16)
	}) {
		u, df11 := group[0], int64(0)
		for _, x := range group {
			df11 += x.DF11 / int64(len(group))
		}
		size, ratio := human.Bytes(df11), fmt.Sprintf("%.1f%%", percentage(df11, u.Bytes))
		if u.BF16 != "" {
			size, ratio = "stays BF16: it "+metadata.ReasonText(u.BF16), ""
		}
		printf(t, "%d\t%d\t%s\t%s\t%s\t  %s\n", len(group), u.Tensors, human.Bytes(u.Bytes), size,
			ratio, choose(len(group) == 1, u.Path, u.kind()))
	}
	t.Flush()
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

// printPlain prints the uncompressed tensors by reason, the reason of the largest tensor first.
func (f *forecast) printPlain(w io.Writer) {
	printf(w, "\nleft uncompressed: %s in %s\n", human.Bytes(f.plan.PlainBytes()),
		count(len(f.Plain), "tensor"))
	for _, group := range alike(f.Plain, func(t plainTensor) string { return t.Why }) {
		bytes, largest := int64(0), group[0]
		for _, t := range group {
			bytes += t.Bytes
		}
		printf(w, "  %d with %s: %s\n    such as %s %v\n", len(group), human.Bytes(bytes),
			largest.Why, largest.Name, largest.Shape)
	}
}

// printRemarks prints shared tensors, differences, warnings, and the loaders of the result.
func (f *forecast) printRemarks(w io.Writer) {
	for _, list := range []struct {
		title string
		lines []string
	}{
		{"tied tensors, stored once if they're equal (" + f.aliasBasis() + ")", f.Aliases},
		{"differences from the official converter", f.Differences},
		{"warnings", f.Warnings},
		{"stay in the folder, because no reader of the model opens them (--include GLOB brings some)",
			byFolder(f.Left)},
	} {
		if len(list.lines) > 0 {
			printf(w, "\n%s:\n", list.title)
			for _, line := range list.lines {
				printf(w, "  %s\n", line)
			}
		}
	}
	if len(f.Readers) == 0 {
		return
	}
	fmt.Fprintln(w, "\ncompatible loaders:")
	t := newTable(w)
	for _, r := range f.Readers {
		printf(t, "  %s\t%s\t%s\t%s\n", r.Name, r.Version, r.Loads, r.Why)
	}
	t.Flush()
}
