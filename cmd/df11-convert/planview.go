package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/pipeline"
)

// forecast is what plan shows.
type forecast pipeline.Forecast

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
	if n := f.Estimate.AliasBytes; n < f.AliasBytes {
		return fmt.Sprintf("of %s, %s were compared so far; convert compares every bit",
			human.Bytes(f.AliasBytes), human.Bytes(n))
	}
	return "compared now, and again by convert"
}

// print writes the forecast for people.
func (f *forecast) print(w io.Writer, width int) {
	printf(w, "%s\n", f.Gain)
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
	switch {
	case f.Original != "":
		t.row("original", "%s: every weight file has the same SHA-256", f.Original)
	case f.Local:
		t.row("verify", "%s", pipeline.Unproved)
	}
	t.row("commit", "%s", f.Commit)
	if len(f.Published) > 0 {
		t.row("DF11 exists", "%s, according to its card; check with: df11-convert verify %s",
			human.List(f.Published), human.ShellWord(f.Published[0]))
	}
	t.row("layout", "%s", f.Layout)
	t.row("pattern dict", "%s", dictOrigin(f.Entry, f.Provenance))
	t.row("read", "%s in %s", human.Bytes(f.Bytes),
		human.Count(f.SourceFiles, "file"))
	t.row("write", "%s in %s (%s)", human.Bytes(f.Estimate.OutputBytes),
		human.Count(f.Files, "file"), f.basis())
	t.row("also write", "%s", f.sideFiles())
	for _, g := range f.GPUs {
		t.row("GPU", "%s (10%% kept free)", g)
	}
	t.row("disk", "into a folder, result included: %s", diskNeeds(f.Needs.DiskFolderFree, f.Needs.Disk,
		f.Needs.DiskFolderLeast))
	t.row("disk", "with --push alone: %s", diskNeeds(f.Needs.DiskLeast, f.Needs.DiskPush, f.Needs.DiskLeast))
	if !f.Local { // printRemarks lists them all
		t.row("copied", "%s", human.List(f.Copied))
	}
	if n := len(f.LeftOut); n > 0 {
		t.row("left out", "%s: %s", human.Count(n, "tensor"), human.List(human.ByModule(f.LeftOut)))
	}
	t.row("memory", "at most %s", human.Bytes(f.Needs.Memory))
	t.row("upload", "%s with --push, besides the files of unknown size", human.Bytes(f.Needs.Upload))
	t.Flush()
	f.printUnits(w, width)
	f.printPlain(w)
	f.printRemarks(w, width)
}

// diskNeeds says how much of the disk must be free, how much a run takes if it has more, and the
// smallest limit for the files that don't stay, if there are any.
func diskNeeds(free, most, least int64) string {
	text := fmt.Sprintf("%s must be free; %s at most gets used", human.BytesUp(free), human.BytesUp(most))
	if least > 0 {
		text += "; --disk at least " + human.BytesUp(least)
	}
	return text
}

// sideFiles names the files that the conversion or the Hub writes next to the weights, with the
// sizes that are known.
func (f *forecast) sideFiles() string {
	var known, unknown, hub []string
	for _, x := range f.ResultFiles {
		switch {
		case x.Kind == "hub":
			hub = append(hub, x.Path)
		case x.Path == names.Manifest:
			known = append(known, fmt.Sprintf("%s (about %s)", x.Path, human.Bytes(*x.Bytes)))
		case x.Kind == "written" && x.Bytes != nil:
			known = append(known, fmt.Sprintf("%s (%s)", x.Path, human.Bytes(*x.Bytes)))
		case x.Kind == "written":
			unknown = append(unknown, x.Path)
		}
	}
	return fmt.Sprintf("%s; %s, whose sizes aren't known yet; with --push, the "+
		"Hub adds %s to a new repo", strings.Join(known, ", "), strings.Join(unknown, ", "),
		strings.Join(hub, ", "))
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

// unitKind returns a unit's path without its numbers, such as "model.layers.*".
func unitKind(u pipeline.PlannedUnit) string { return numbers.ReplaceAllString(u.Path, "*") }

// printUnits prints one line for each group of similar units.
func (f *forecast) printUnits(w io.Writer, width int) {
	fmt.Fprintln(w)
	r := &rows{names: []string{"modules", "tensors each", "BF16 each", "DF11 each", "ratio", "name"},
		numbers: true}
	for _, group := range alike(f.Units, func(u pipeline.PlannedUnit) string {
		return fmt.Sprintln(unitKind(u), u.Tensors, u.Bytes, u.BF16)
	}) {
		u, df11 := group[0], int64(0)
		for _, x := range group {
			df11 += x.DF11 / int64(len(group))
		}
		size, ratio := human.Bytes(df11), fmt.Sprintf("%.1f%%", human.Percentage(df11, u.Bytes))
		if u.BF16 != "" {
			size, ratio = "stays BF16: it "+metadata.ReasonText(u.BF16), ""
		}
		r.add(fmt.Sprint(len(group)), fmt.Sprint(u.Tensors), human.Bytes(u.Bytes), size, ratio,
			choose(len(group) == 1, u.Path, unitKind(u)))
	}
	r.print(w, width)
}

// printPlain prints the uncompressed tensors by reason, the reason of the largest tensor first.
func (f *forecast) printPlain(w io.Writer) {
	printf(w, "\nleft uncompressed: %s in %s\n", human.Bytes(f.PlainBytes),
		human.Count(len(f.Plain), "tensor"))
	for _, group := range alike(f.Plain, func(t pipeline.PlainTensor) string { return t.Why }) {
		bytes, largest := int64(0), group[0]
		for _, t := range group {
			bytes += t.Bytes
		}
		printf(w, "  %d with %s: %s\n    such as %s %v\n", len(group), human.Bytes(bytes),
			largest.Why, largest.Name, largest.Shape)
	}
}

// printRemarks prints shared tensors, differences, warnings, and the loaders of the result.
func (f *forecast) printRemarks(w io.Writer, width int) {
	var copied []string
	if f.Local {
		copied = f.Copied
	}
	for _, list := range []struct {
		title string
		lines []string
	}{
		{"tied tensors, stored once if they're equal (" + f.aliasBasis() + ")", f.Aliases},
		{"differences from the official converter", f.Differences},
		{"warnings", f.Warnings},
		{"copied unchanged, and published with --push", copied},
		{"stay in the folder, because no reader of the model opens them (--include GLOB brings some)",
			human.ByFolder(f.Left, f.Copied)},
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
	fmt.Fprintln(w, "\nloaders:")
	r := &rows{names: []string{"loader", "version", "loads", "why"}, indented: true}
	for _, x := range f.Readers {
		r.add(x.Name, x.Version, x.Loads, x.Why)
	}
	r.print(w, width)
}
