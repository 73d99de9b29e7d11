package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/df11-convert/df11-convert/internal/budget"
	"github.com/df11-convert/df11-convert/internal/charts"
	"github.com/df11-convert/df11-convert/internal/describe"
	"github.com/df11-convert/df11-convert/internal/fits"
	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/terminal"
)

// forecast is what plan shows: a plan, the estimated size of the result, and what making it takes.
type forecast struct {
	*opened
	size      *budget.Estimate
	needs     budget.Needs
	disk      int64 // --disk; 0 is none
	bandwidth int64 // bytes per second
	gpu       gpuQuestion
	published []string // DF11 repos of the model, according to their cards
}

// timeOf returns how long a transfer of n bytes takes, for people: at least a second.
func (f *forecast) timeOf(n int64) string {
	const most = 1e9 // seconds; a Duration can hold that
	seconds := max(1, min(float64(n)/float64(f.bandwidth), most))
	return terminal.Duration(time.Duration(seconds * float64(time.Second)))
}

// gain returns what the conversion would gain, in one line.
func (f *forecast) gain() string { return gain(f.plan, f.size.OutputBytes, f.size.Exact) }

// gain returns, in one line, how much smaller than BF16 the df11 bytes are, and what stays BF16.
// Unless exact is set, df11 is an estimate.
func gain(p *plan.Plan, df11 int64, exact bool) string {
	bf16 := bf16Bytes(p)
	less := fmt.Sprintf("%.0f%% smaller", 100-percentage(df11, bf16))
	if stays := p.Stays(); stays != "" {
		less += "; " + stays
	}
	return fmt.Sprintf("%s%s → %s%s (%s)", human.Bytes(bf16), choose(bf16 < p.SourceBytes(), " in BF16", ""),
		choose(exact, "", "about "), human.Bytes(df11), less)
}

// bf16Bytes returns the size of the source, counting exact F32 as BF16.
func bf16Bytes(p *plan.Plan) int64 { return p.SourceBytes() - 2*spans.NExactF32(p) }

// basis returns what an estimate is based on, in words.
func basis(e *budget.Estimate) string {
	switch {
	case e.Exact:
		return "exact: all weights were read"
	case e.Samples == 0:
		return "nothing was sampled: this assumes the usual ratio of trained weights"
	}
	return fmt.Sprintf("estimated from %s of the weights in %s", human.Bytes(e.SampledBytes),
		count(e.Samples, "range"))
}

// document returns the forecast as plan --json prints it.
func (f *forecast) document() map[string]any {
	m, p := f.model, f.plan
	return omitEmpty(map[string]any{
		"source": m.ID, "commit": m.Commit, "private": m.Private, "gated": m.Gated,
		"source_files": len(m.Listing.Weights), "source_bytes": p.SourceBytes(),
		"layout": p.Layout, "entry": p.Entry, "provenance": p.Provenance, "derived": p.Derived(),
		"pattern_dict": p.PatternDict, "digest": p.Digest(),
		"units": f.unitDocuments(), "unit_bytes": p.UnitBytes(), "plain_bytes": p.PlainBytes(),
		"output_files": transform(p.OutputFiles,
			func(f plan.OutputFile) string { return f.Path }),
		"output_bytes_estimate": f.size.OutputBytes, "estimate": f.estimateDocument(),
		"picture":   f.picture(),
		"remainder": f.remainderDocuments(), "aliases": aliases(p),
		"tied_embeddings": p.TiedEmbeddings,
		"copied":          transform(p.Copied, func(f plan.File) string { return f.Path }),
		"not_copied":      append([]plan.Skipped{}, p.NotCopied...),
		"gpus":            f.gpus(), "published": f.published,
		"differences": p.Differences, "warnings": p.Warnings, "readers": p.Readers,
		"loader": p.Loader,
	}, "published", "commit", "gated", "entry", "aliases", "differences", "warnings", "readers")
}

// picture draws both sizes for a page.
func (f *forecast) picture() string {
	r := &describe.Report{BF16Bytes: bf16Bytes(f.plan), DF11Bytes: f.size.OutputBytes}
	for i, u := range f.plan.Units {
		if e := f.size.Units[i]; e.BF16 == "" {
			r.Weights += u.NElems()
			r.Parts.Exponents += e.Bytes - u.NElems()
		}
	}
	r.Parts.SignMantissa = r.Weights
	r.Parts.Unchanged = max(0, r.DF11Bytes-r.Weights-r.Parts.Exponents)
	return charts.Drawing(r)
}

// omitEmpty removes the named members, strings and lists, if they are empty.
func omitEmpty(doc map[string]any, names ...string) map[string]any {
	for _, name := range names {
		if reflect.ValueOf(doc[name]).Len() == 0 {
			delete(doc, name)
		}
	}
	return doc
}

func (f *forecast) estimateDocument() map[string]any {
	e := f.size
	return map[string]any{
		"exact": e.Exact, "empty_mantissa_bits": e.EmptyBits, "sampled_bytes": e.SampledBytes,
		"samples": e.Samples, "needs": f.needs,
	}
}

func (f *forecast) unitDocuments() (docs []map[string]any) {
	for i, u := range f.plan.Units {
		e := f.size.Units[i]
		docs = append(docs, omitEmpty(map[string]any{
			"path": u.Path, "file": u.File, "tensors": len(u.Attrs), "siblings": len(u.Siblings),
			"weights": u.NElems(),
			"bytes":   2 * u.NElems(), "df11_bytes": e.Bytes, "sampled_weights": e.Sampled,
			"exact":      e.Sampled == u.NElems(),
			"stays_bf16": e.BF16,
		}, "stays_bf16"))
	}
	return docs
}

func (f *forecast) remainderDocuments() []map[string]any {
	return transform(f.plan.Remainder, func(t plan.Tensor) map[string]any {
		return map[string]any{
			"name": t.Name, "dtype": t.DType, "shape": t.Shape, "bytes": t.Length,
			"why": whyPlain(t, f.plan.TiedEmbeddings),
		}
	})
}

func aliases(p *plan.Plan) []string {
	return transform(p.Aliases,
		func(a plan.Alias) string { return a.Tensor.Source + " = " + a.Of.Source })
}

// print writes the forecast for people.
func (f *forecast) print(w io.Writer) {
	m, p, e := f.model, f.plan, f.size
	printf(w, "%s\n", f.gain())
	if e.EmptyBits >= 4 { // as FP8 leaves them
		printf(w,
			"the lowest %d of 7 mantissa bits are 0 in every weight that was read: the weights come from a smaller type, "+
				"such as FP8, which takes less space than DF11\n", e.EmptyBits)
	}
	fmt.Fprintln(w)
	t := newTable(w)
	t.row("source", "%s%s", m.ID, access(m.Private, m.Gated))
	t.row("commit", "%s", m.Commit)
	if m.Lineage.Repo != "" {
		t.row("base model", "%s%s (not checked)", m.Lineage.Repo, atCommit(m.Lineage.Commit))
	}
	if len(f.published) > 0 {
		t.row("DF11 exists", "%s, according to its card; check with: df11-convert verify",
			human.List(f.published))
	}
	t.row("layout", "%s", p.Layout)
	t.row("pattern dict", "%s", origin(p))
	t.row("read", "%s in %s", human.Bytes(p.SourceBytes()), count(len(m.Listing.Weights), "file"))
	t.row("write", "%s%s in %s, %.1f%% (%s)", choose(e.Exact, "", "about "),
		human.Bytes(e.OutputBytes), count(len(p.OutputFiles), "file"),
		percentage(e.OutputBytes, bf16Bytes(p)), basis(e))
	t.row("GPU", "%s", f.holders())
	f.printNeeds(t)
	t.Flush()
	f.printUnits(w)
	f.printPlain(w)
	f.printRemarks(w)
}

// gpuQuestion is the GPU of --vram: its memory in GiB (0 if none is named), and the tokens and
// sequences that must fit next to the weights.
type gpuQuestion struct{ gib, context, batch int64 }

// gpus returns the GPUs that hold at least one form of the model; with --vram, only that GPU.
func (f *forecast) gpus() []fits.Fit {
	w := fits.Weights{BF16: bf16Bytes(f.plan), DF11: f.size.OutputBytes,
		Largest: f.plan.LargestModule(func(i int) bool { return f.size.Units[i].BF16 != "" })}
	if q := f.gpu; q.gib > 0 {
		return []fits.Fit{w.On(1, q.gib, fits.ReadCache(f.model.Listing.Config), q.context, q.batch)}
	}
	return w.Table()
}

// holders names the smallest GPU for each form; with --vram, it says what fits that GPU.
func (f *forecast) holders() string {
	gpus := f.gpus()
	if f.gpu.gib > 0 {
		return fmt.Sprintf("%s: DF11 %s, BF16 %s (10%% kept free)", gpus[0],
			f.gpu.answer(gpus[0].DF11, gpus[0].DF11Context),
			f.gpu.answer(gpus[0].BF16, gpus[0].BF16Context))
	}
	smallest := func(holds func(fits.Fit) bool) string {
		if i := slices.IndexFunc(gpus, holds); i >= 0 {
			return gpus[i].String()
		}
		return "none of the usual sizes"
	}
	return fmt.Sprintf("smallest: %s for DF11, %s for BF16 (weights only, 10%% kept free)",
		smallest(func(f fits.Fit) bool { return f.DF11 }),
		smallest(func(f fits.Fit) bool { return f.BF16 }))
}

// answer returns whether one form fits, and with how much context.
func (q gpuQuestion) answer(ok bool, longest int64) string {
	size := ""
	if q.batch > 1 {
		size = fmt.Sprintf(" × %d", q.batch)
	}
	switch {
	case !ok && longest > 0:
		return fmt.Sprintf("doesn't fit: at most %s of context%s", count(longest, "token"), size)
	case !ok:
		return "doesn't fit"
	case longest > 0:
		return fmt.Sprintf("fits with up to %s of context%s", count(longest, "token"), size)
	}
	return "fits (weights only)"
}

// access returns a note if not everyone may read the source.
func access(private bool, gated string) string {
	var words []string
	if private {
		words = append(words, "private")
	}
	if gated != "" {
		words = append(words, "gated")
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ": the target will be private)"
}

// origin returns where the pattern dict comes from.
func origin(p *plan.Plan) string {
	switch {
	case p.Derived():
		return "derived from the tensor names, not checked by anyone"
	case p.Entry != "":
		return p.Entry + " (" + p.Provenance + ")"
	}
	return p.Provenance
}

// printNeeds writes what the conversion needs: disk, memory, and transfers.
func (f *forecast) printNeeds(t *table) {
	n, line := f.needs, human.Bytes(f.bandwidth)
	t.row("disk", "%s", f.diskText("with a folder as the target", n.Disk, n.DiskFolderLeast))
	t.row("", "%s", f.diskText("with --push alone", n.DiskPush, n.DiskLeast))
	t.row("memory", "at most %s", human.Bytes(n.Memory))
	both := ""
	if n.Download > 0 {
		t.row("download", "%s, %s at %s/s", human.Bytes(n.Download), f.timeOf(n.Download), line)
		both = fmt.Sprintf("; both run at once, so %s in all", f.timeOf(max(n.Download, n.Upload)))
	} else {
		t.row("download", "nothing: the source is local")
	}
	t.row("upload", "with --push %s, %s at %s/s%s", human.Bytes(n.Upload), f.timeOf(n.Upload), line,
		both)
}

// diskText returns how much disk a conversion takes at most, and the smallest --disk that works.
func (f *forecast) diskText(when string, bound, least int64) string {
	switch {
	case f.disk > 0 && f.disk < least:
		return fmt.Sprintf("--disk %s is too little %s: at least %s are needed",
			human.Bytes(f.disk), when, human.BytesUp(least))
	case least == 0:
		return fmt.Sprintf("at most %s %s", human.Bytes(bound), when)
	case bound == least:
		return fmt.Sprintf("at most %s %s (the minimum for --disk)", human.BytesUp(least), when)
	}
	return fmt.Sprintf("at most %s %s (minimum --disk: %s)", human.Bytes(bound), when,
		human.BytesUp(least))
}

// printUnits prints one line for each run of similar units.
func (f *forecast) printUnits(w io.Writer) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "modules\ttensors each\tBF16 each\tDF11 each\tratio\t\n")
	units := f.plan.Units
	for i := 0; i < len(units); {
		j, u, df11 := i, units[i], int64(0)
		for j < len(units) && f.alike(i, j) {
			df11 += f.size.Units[j].Bytes
			j++
		}
		df11 /= int64(j - i)
		bf16 := 2 * u.NElems()
		size, ratio := human.Bytes(df11), fmt.Sprintf("%.1f%%", percentage(df11, bf16))
		if reason := f.size.Units[i].BF16; reason != "" {
			size, ratio = "stays BF16: it "+metadata.ReasonText(reason), ""
		}
		printf(t, "%d\t%d\t%s\t%s\t%s\t  %s\n", j-i, len(u.Attrs), human.Bytes(bf16), size, ratio,
			runName(u.Path, units[j-1].Path))
		i = j
	}
	t.Flush()
}

// alike reports whether units i and j can share a line.
func (f *forecast) alike(i, j int) bool {
	a, b := f.plan.Units[i], f.plan.Units[j]
	return len(a.Attrs) == len(b.Attrs) && a.NElems() == b.NElems() &&
		f.size.Units[i].BF16 == f.size.Units[j].BF16 &&
		path.Ext(a.Path) == "" == (path.Ext(b.Path) == "")
}

var numbers = regexp.MustCompile(`\d+`)

// runName returns a name for a run of similar modules, such as "model.layers.0–31".
func runName(first, last string) string {
	kind := numbers.ReplaceAllString(first, "#")
	switch {
	case first == last:
		return first
	case strings.Count(kind, "#") > 1:
		return first + " …"
	}
	return strings.Replace(kind, "#", numbers.FindString(first)+"–"+numbers.FindString(last), 1)
}

// whyPlain returns why a tensor stays uncompressed.
func whyPlain(t plan.Tensor, tied bool) string {
	switch {
	case t.DType != "BF16":
		return string(t.DType) + ": DF11 holds BF16 only"
	case len(t.Shape) < 2:
		return "norm, bias, or scale: DF11 compresses only matrices of linear and embedding modules"
	case t.IsFusedExperts():
		return plan.FusedExperts
	case len(t.Shape) > 2:
		return "more than two dimensions: not a linear module's weight"
	case tied && strings.Contains(t.Name, "embed"):
		return "embedding, shared with the head: stored once, in BF16"
	}
	return "in no pattern of the dict"
}

func largerFirst(a, b plan.Tensor) int { return cmp.Compare(b.Length, a.Length) }

// printPlain prints the uncompressed tensors by reason, the reason of the largest tensor first.
func (f *forecast) printPlain(w io.Writer) {
	p, plain := f.plan, slices.Clone(f.plan.Remainder)
	for _, u := range p.Units {
		plain = append(plain, u.Siblings...)
	}
	printf(w, "\nleft uncompressed: %s in %s\n", human.Bytes(p.PlainBytes()),
		count(len(plain), "tensor"))
	groups, reasons := map[string][]plan.Tensor{}, []string(nil)
	for _, t := range slices.SortedStableFunc(slices.Values(plain), largerFirst) {
		why := whyPlain(t, p.TiedEmbeddings)
		if groups[why] == nil {
			reasons = append(reasons, why)
		}
		groups[why] = append(groups[why], t)
	}
	for _, why := range reasons {
		bytes, largest := int64(0), groups[why][0]
		for _, t := range groups[why] {
			bytes += t.Length
		}
		printf(w, "  %d with %s: %s\n    such as %s %v\n", len(groups[why]), human.Bytes(bytes), why,
			largest.Name, largest.Shape)
	}
}

// printRemarks prints shared tensors, differences, warnings, and the loaders of the result.
func (f *forecast) printRemarks(w io.Writer) {
	p := f.plan
	for _, list := range []struct {
		title string
		lines []string
	}{
		{"equal tensors, stored once (convert compares every bit)", aliases(p)},
		{"differences from the official converter", p.Differences},
		{"warnings", p.Warnings},
	} {
		if len(list.lines) > 0 {
			printf(w, "\n%s:\n", list.title)
			for _, line := range list.lines {
				printf(w, "  %s\n", line)
			}
		}
	}
	if len(p.Readers) == 0 {
		return
	}
	fmt.Fprintln(w, "\ncompatible loaders:")
	t := newTable(w)
	for _, r := range p.Readers {
		printf(t, "  %s\t%s\t%s\t%s\n", r.Name, r.Version, r.Loads, r.Why)
	}
	t.Flush()
}
