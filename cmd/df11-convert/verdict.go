package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/proof"
)

// verdict is the outcome of a check in one line that can be quoted.
func verdict(r *proof.Report) string {
	against := r.Against
	if r.AgainstFile != "" {
		against += " (" + r.AgainstFile + ")"
	}
	d := r.Differences
	switch {
	case r.Equal:
		return fmt.Sprintf("%s equals %s (level %s)", r.Model, against, r.Level)
	case d == nil:
		return fmt.Sprintf("%s shows no fault against %s (level %s)", r.Model, against, r.Level)
	case d.Weights+d.Values > 0 || d.Rebuilt > 0:
		return fmt.Sprintf("%s differs from %s: %s", r.Model, against, extent(r))
	}
	return fmt.Sprintf("%s is damaged: %s", r.Model, extent(r))
}

// extent says how much differs. Where the check ended with the first difference, it says so.
func extent(r *proof.Report) string {
	d := r.Differences
	var parts []string
	part := func(n int, format string, args ...any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	modules := fmt.Sprintf("%d of %s", d.Modules, count(d.OfModules, "module"))
	if d.Weights > 0 {
		modules = fmt.Sprintf("%s in %s", count(d.Weights, "weight"), modules)
	}
	part(d.Modules, "%s", modules)
	values := "in "
	if d.Values > 0 {
		values = count(d.Values, "value") + " in "
	}
	part(d.Tensors, "%s%s", values, count(d.Tensors, "copied tensor"))
	part(d.Rebuilt, "%s of the original cannot be rebuilt", count(d.Rebuilt, "file"))
	part(d.Files, "%s not as the manifest says", count(d.Files, "file"))
	part(d.Structure, "%s in headers or config", count(d.Structure, "fault"))
	return strings.Join(parts, ", ") + either(d.All, "", "; the check ended there (--all goes on)")
}

// differenceHint says what may be behind a difference.
func differenceHint(r *proof.Report) string {
	switch d := r.Differences; {
	case d == nil:
		return ""
	case r.OtherOriginal:
		return fmt.Sprintf("by its manifest the model was made from other files than those of %s: name its original, at the right commit, with --against", r.Against)
	case d.Weights > 0 && d.MostDiffer():
		return fmt.Sprintf("almost all weights differ: is %s the right original? Name another with --against", r.Against)
	}
	return ""
}

// shownDifferences bounds how many differences are printed.
const shownDifferences = 20

func printVerifyReport(w io.Writer, r *proof.Report) {
	t := newTable(w)
	for _, f := range verifyFacts(r) {
		t.row(f.name, "%s", f.text)
	}
	t.Flush()
	if d := r.Differences; d != nil {
		fmt.Fprintln(w, "differences:")
		for _, x := range d.List[:min(len(d.List), shownDifferences)] {
			printf(w, "  %s\n", differenceText(x))
		}
		if more := d.Count() - shownDifferences; more > 0 {
			printf(w, "  and %s more\n", human.Grouped(int64(more), ","))
		}
	}
	printf(w, "%s\n", verdict(r))
}

// differenceText is a difference in one line.
func differenceText(d proof.Difference) string {
	if d.Differing == 0 {
		return d.Fault
	}
	thing := either(d.Kind == proof.KindTensor, "value", "weight")
	first := strings.TrimPrefix(d.Fault, "module "+d.Name+", ")
	return fmt.Sprintf("%s: %s of %s; first %s", d.Name, human.Grouped(d.Differing, ","), count(d.Weights, thing), first)
}

// fact is a line of a report.
type fact struct{ name, text string }

// verifyFacts are what was checked, and how.
func verifyFacts(r *proof.Report) (facts []fact) {
	add := func(name, format string, args ...any) {
		facts = append(facts, fact{name, fmt.Sprintf(format, args...)})
	}
	add("model", "%s%s", r.Model, at(r.Commit))
	add("original", "%s", r.Against)
	add("level", "%s", r.Level)
	modules := count(r.Units, "compressed module")
	if r.Equal {
		modules += fmt.Sprintf(" (%s decoded)", count(r.Weights, "weight"))
	}
	if r.BF16 > 0 {
		modules += fmt.Sprintf(", %s in BF16", count(r.BF16, "module"))
	}
	add("checked", "%s, %s", modules, count(r.Tensors, "copied tensor"))
	if r.OK {
		add("compared", "%s", compared(r))
	}
	if r.Listed > 0 {
		add("sha256", "%d of %s compared with the manifest%s", r.Hashed, count(r.Listed, "file"),
			either(r.OK, ": they are as the converter left them", ""))
	}
	if r.GPU != nil {
		add("GPU", "%d of %d modules once more: %s on %s", r.GPU.Units, r.Units, r.GPU.Kernel, strings.Join(r.GPU.Devices, ", "))
	}
	for _, x := range r.Warnings {
		add("warning", "%s", x)
	}
	return facts
}

// compared says what a level that found nothing wrong has compared.
func compared(r *proof.Report) string {
	const more = "; use --level proof or full to check equality"
	switch r.Level {
	case proof.LevelFull:
		return "all 16 bits of every weight: 0 differ"
	case proof.LevelProof:
		return fmt.Sprintf("%s rebuilt: every sha256 is %s", count(r.Files, "original file"), either(r.Published, "the published one", "the original's"))
	case proof.LevelSample:
		return fmt.Sprintf("up to %s of each module: 0 weights differ there (seed %d)%s", count(r.Chunks, "chunk"), r.Seed, more)
	}
	return "headers, tables, positions and completeness; no weight was compared" + more
}

// verifyPage is a report as a Markdown page.
func verifyPage(r *proof.Report) []byte {
	var b bytes.Buffer
	printf(&b, "# %s\n\n| | |\n| --- | --- |\n", metadata.PlainText(verdict(r)))
	for _, f := range append(verifyFacts(r), fact{"checked by", "df11-convert " + versionText()}) {
		printf(&b, "| %s | %s |\n", f.name, metadata.PlainText(f.text))
	}
	if d := r.Differences; d != nil {
		printf(&b, "\n## Differences\n\n| where | weights that differ | what was found first |\n| --- | ---: | --- |\n")
		for _, x := range d.List {
			n := ""
			if x.Weights > 0 {
				n = human.Grouped(x.Differing, ",") + " of " + human.Grouped(x.Weights, ",")
			}
			printf(&b, "| %s | %s | %s |\n", metadata.PlainText(x.Name), n, metadata.PlainText(x.Fault))
		}
		if more := d.Count() - len(d.List); more > 0 {
			printf(&b, "\n%s more differences are not listed.\n", human.Grouped(int64(more), ","))
		}
	}
	return []byte(printable(b.String()))
}
