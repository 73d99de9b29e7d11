package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/df11-convert/df11-convert/internal/atomicfile"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/pipeline"
)

// planView is the plan as the plan verb prints it.
type planView struct {
	Source      string           `json:"source"`
	Commit      string           `json:"commit,omitempty"`
	Private     bool             `json:"private"`
	Gated       string           `json:"gated,omitempty"`
	Layout      plan.Layout      `json:"layout"`
	Entry       string           `json:"entry,omitempty"`
	Provenance  string           `json:"provenance"`
	Derived     bool             `json:"derived"`
	PatternDict plan.PatternDict `json:"pattern_dict"`
	Digest      string           `json:"digest"`
	Units       []unitView       `json:"units"`
	SourceFiles int              `json:"source_files"`
	SourceBytes int64            `json:"source_bytes"`
	UnitBytes   int64            `json:"unit_bytes"`
	PlainBytes  int64            `json:"plain_bytes"`
	OutputFiles []string         `json:"output_files"`
	OutputBytes int64            `json:"output_bytes_estimate"`
	Estimate    *estimateView    `json:"estimate"`
	Remainder   []tensorView     `json:"remainder"`
	Aliases     []string         `json:"aliases,omitempty"`
	Tied        bool             `json:"tied_embeddings"`
	Copied      []string         `json:"copied"`
	NotCopied   []plan.Skipped   `json:"not_copied"`
	Differences []string         `json:"differences,omitempty"`
	Warnings    []string         `json:"warnings,omitempty"`
	Readers     []plan.Reader    `json:"readers,omitempty"`
	Loader      plan.Loader      `json:"loader"`
}

type unitView struct {
	Path     string `json:"path"`
	File     string `json:"file"`
	Tensors  int    `json:"tensors"`
	Siblings int    `json:"siblings"`
	Weights  int64  `json:"weights"`
	Bytes    int64  `json:"bytes"`
	DF11     int64  `json:"df11_bytes"`
	Sampled  int64  `json:"sampled_weights"`
	Exact    bool   `json:"exact"`
	BF16     string `json:"stays_bf16,omitempty"`
}

type tensorView struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	Bytes int64   `json:"bytes"`
	Why   string  `json:"why"` // it passes through unchanged
}

func newPlanView(o *opened, e *pipeline.Estimate) *planView {
	p := o.plan
	v := &planView{
		Source: o.model.ID, Commit: o.model.Commit, Private: o.model.Private, Gated: o.model.Gated,
		Layout: p.Layout, Entry: p.Entry, Provenance: p.Provenance, Derived: p.Derived, PatternDict: p.PatternDict,
		Digest: p.Digest(), SourceFiles: len(o.model.Plan.Weights), SourceBytes: p.SourceBytes(),
		UnitBytes: p.UnitBytes(), PlainBytes: p.PlainBytes(), Tied: p.TiedEmbeddings, NotCopied: p.NotCopied,
		Differences: p.Differences, Readers: p.Readers, Loader: p.Loader,
		OutputBytes: e.OutputBytes,
	}
	for i, u := range p.Units {
		x := e.Units[i]
		v.Units = append(v.Units, unitView{
			Path: u.Path, File: u.File, Tensors: len(u.Attrs), Siblings: len(u.Siblings), Weights: u.NElems(),
			Bytes: 2 * u.NElems(), DF11: x.Bytes, Sampled: x.Sampled, Exact: x.Exact, BF16: x.BF16,
		})
	}
	for _, f := range p.OutputFiles {
		v.OutputFiles = append(v.OutputFiles, f.Path)
	}
	for _, t := range p.Remainder {
		v.Remainder = append(v.Remainder, tensorView{t.Name, string(t.DType), t.Shape, t.Length, whyPlain(t, p.TiedEmbeddings)})
	}
	for _, a := range p.Aliases {
		v.Aliases = append(v.Aliases, a.Tensor.Source+" = "+a.Of.Source)
	}
	for _, f := range p.Copied {
		v.Copied = append(v.Copied, f.Path)
	}
	for _, w := range p.Warnings {
		v.Warnings = append(v.Warnings, w.Text)
	}
	return v
}

// print writes the plan for people.
func (v *planView) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("source", "%s%s", v.Source, v.access())
	if v.Commit != "" {
		row("commit", "%s", v.Commit)
	}
	row("layout", "%s", v.Layout)
	row("pattern dict", "%s", v.origin())
	row("read", "%s in %d files", human.Bytes(v.SourceBytes), v.SourceFiles)
	row("write", "%s%s in %d files, %.1f %% (%s)", v.about(), human.Bytes(v.OutputBytes), len(v.OutputFiles), percent(v.OutputBytes, v.SourceBytes), v.Estimate.how())
	v.Estimate.print(row)
	t.Flush()
	v.printUnits(w)
	v.printRest(w)
}

// about marks a size that is not exact.
func (v *planView) about() string {
	if v.Estimate.Exact {
		return ""
	}
	return "about "
}

func (v *planView) access() string {
	var words []string
	if v.Private {
		words = append(words, "private")
	}
	if v.Gated != "" {
		words = append(words, "gated")
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ": the target will be private)"
}

func (v *planView) origin() string {
	switch {
	case v.Derived:
		return "derived from the tensor names; nobody has checked it"
	case v.Entry != "":
		return v.Entry + " (" + v.Provenance + ")"
	}
	return v.Provenance
}

// printUnits prints a line for each run of units that are alike.
func (v *planView) printUnits(w io.Writer) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "units\ttensors\tweights each\tBF16 each\tDF11 each\tratio\t \n")
	for i := 0; i < len(v.Units); {
		j, u, df11 := i, v.Units[i], int64(0)
		for j < len(v.Units) && alike(u, v.Units[j]) {
			df11 += v.Units[j].DF11
			j++
		}
		df11 /= int64(j - i)
		size, ratio := human.Bytes(df11), fmt.Sprintf("%.1f %%", percent(df11, u.Bytes))
		if u.BF16 != "" {
			size, ratio = "stays BF16: it "+metadata.ReasonText(u.BF16), ""
		}
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\t%s\t%s\t  %s\n", j-i, u.Tensors, u.Weights, human.Bytes(u.Bytes), size, ratio, names(v.Units[i:j]))
		i = j
	}
	t.Flush()
}

func alike(a, b unitView) bool {
	return a.Tensors == b.Tensors && a.Weights == b.Weights && a.BF16 == b.BF16 && path.Ext(a.Path) == "" == (path.Ext(b.Path) == "")
}

// names is the first and the last unit of a run.
func names(us []unitView) string {
	if len(us) == 1 {
		return us[0].Path
	}
	return us[0].Path + " … " + us[len(us)-1].Path
}

// whyPlain says why a tensor passes through unchanged.
func whyPlain(t plan.Tensor, tied bool) string {
	switch {
	case t.DType != "BF16":
		return string(t.DType) + ": DF11 holds BF16 only"
	case len(t.Shape) < 2:
		return "norm, bias or scale: the loader compresses matrices of linear and embedding modules only"
	case len(t.Shape) > 2:
		return "more than two dimensions: no linear module's weight"
	case tied && strings.Contains(t.Name, "embed"):
		return "embedding that the head shares: stored once, in BF16"
	}
	return "in no pattern of the dict"
}

// printPlain prints what passes through, by reason, largest first.
func (v *planView) printPlain(w io.Writer) {
	fmt.Fprintf(w, "\nunchanged: %s in %d tensors of the remainder and %d siblings inside units\n", human.Bytes(v.PlainBytes), len(v.Remainder), v.siblings())
	type group struct {
		why string
		n   int
		big tensorView
		sum int64
	}
	var groups []*group
	for _, t := range v.Remainder {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.why == t.Why })
		if i < 0 {
			i, groups = len(groups), append(groups, &group{why: t.Why})
		}
		g := groups[i]
		if g.n, g.sum = g.n+1, g.sum+t.Bytes; t.Bytes > g.big.Bytes || g.n == 1 {
			g.big = t
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(b.sum, a.sum) })
	for _, g := range groups {
		fmt.Fprintf(w, "  %d with %s: %s\n    such as %s %v\n", g.n, human.Bytes(g.sum), g.why, g.big.Name, g.big.Shape)
	}
}

func (v *planView) siblings() (n int) {
	for _, u := range v.Units {
		n += u.Siblings
	}
	return n
}

func (v *planView) printRest(w io.Writer) {
	v.printPlain(w)
	if v.Tied {
		fmt.Fprintln(w, "  head and embedding are tied: one matrix, stored once in BF16")
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"equal, so stored once (compared bit by bit while converting)", v.Aliases}, {"differences to the official route", v.Differences}, {"warnings", v.Warnings}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(w, "\n%s:\n  %s\n", list.title, strings.Join(list.lines, "\n  "))
		}
	}
	if len(v.Readers) > 0 {
		fmt.Fprintln(w, "\nreaders:")
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, r := range v.Readers {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", r.Name, r.Version, yesNo(r.OK), r.Why)
		}
		t.Flush()
	}
}

func yesNo(ok bool) string {
	if ok {
		return "loads it"
	}
	return "does not"
}

// writePatternDict writes a dict in the form that --pattern-dict reads.
func writePatternDict(file string, d plan.PatternDict) error {
	b := d.AppendJSON(nil, "", "  ")
	return atomicfile.WriteFile(file, append(b, '\n'))
}
