package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// verdict is the outcome of a verification in one line that can be quoted. err is what is wrong,
// nil for nothing.
func verdict(r *pipeline.VerifyReport, err error) string {
	against := r.Against
	if r.AgainstOnMain != nil && !*r.AgainstOnMain {
		against += "@" + r.AgainstCommit + ", " + notOnMain + ","
	}
	if part := cmp.Or(r.AgainstFile, r.Component); part != "" {
		against += " (" + part + ")"
	}
	others := ""
	if len(r.Beside) > 0 {
		others = "; " + besideError(r.Beside).Error()
	}
	switch {
	case !r.OK && (isMismatch(err) || wraps[*back.RebuildError](err)):
		return fmt.Sprintf("%s differs from %s: %v", r.Model, against, err)
	case !r.OK:
		return fmt.Sprintf("%s is damaged: %v", r.Model, err)
	case !r.Equal:
		return fmt.Sprintf("%s shows no fault against %s (level %s)%s", r.Model, against, r.Level,
			others)
	case others != "":
		return fmt.Sprintf("%s against %s (level %s): weights equal%s", r.Model, against, r.Level,
			others)
	}
	return fmt.Sprintf("%s equals %s (level %s)", r.Model, against, r.Level)
}

// notOnMain says of an original that the model under test has chosen that its files are not those
// of the branch main.
const notOnMain = "an older or unmerged commit"

// besideError says which files beside the weights are not the original's. It ends a verification
// with --strict-files.
type besideError []back.OtherFile

func (e besideError) Error() string {
	const most = 20 // in one line; --json has all
	var names []string
	for _, o := range e[:min(len(e), most)] {
		names = append(names, o.Path+choose(o.How == back.Changed, "", " ("+o.How+")"))
	}
	more := choose(len(e) > most, fmt.Sprintf(" and %d more", len(e)-most), "")
	return fmt.Sprintf("%s %s from the original: %s%s", count(len(e), "other file"),
		choose(len(e) == 1, "differs", "differ"), strings.Join(names, ", "), more)
}

// originalHint says what to do where the model and the original may not belong together.
func originalHint(r *pipeline.VerifyReport, err error) string {
	switch {
	case r.OtherOriginal:
		return fmt.Sprintf(
			"by its manifest the model was made from other files than those of %s: name its original, at the right commit, with --against", r.Against)
	case r.AgainstOnMain != nil: // the model names it
	case wraps[*verify.MismatchError](err) || wraps[*forward.TensorError](err):
		return fmt.Sprintf("if %s is not the original, name another with --against", r.Against)
	}
	return ""
}

// printVerifyReport writes what was checked, and how, and the verdict.
func printVerifyReport(w io.Writer, r *pipeline.VerifyReport, err error) {
	t := newTable(w)
	t.row("model", "%s%s", r.Model, atCommit(r.Commit))
	onMain := ""
	if r.AgainstOnMain != nil {
		onMain = choose(*r.AgainstOnMain, ", the same weights as main", ", "+notOnMain)
	}
	t.row("original", "%s%s%s", r.Against, atCommit(r.AgainstCommit), onMain)
	t.row("level", "%s", r.Level)
	modules := count(r.Units, "compressed module")
	if r.Equal {
		modules += fmt.Sprintf(" (%s decoded)", count(r.Weights, "weight"))
	}
	if r.BF16 > 0 {
		modules += fmt.Sprintf(", %s in BF16", count(r.BF16, "module"))
	}
	t.row("checked", "%s, %s", modules, count(r.Tensors, "copied tensor"))
	if r.OK {
		t.row("compared", "%s", compared(r))
	}
	if r.Listed > 0 {
		t.row("sha256", "%d of %s compared with the manifest", r.Hashed, count(r.Listed, "file"))
	}
	if r.GPU != nil {
		t.row("GPU", "%d of %d modules once more: %s on %s", r.GPU.Units, r.Units, r.GPU.Kernel,
			r.GPU.Device)
	}
	for _, x := range r.Warnings {
		t.row("warning", "%s", x)
	}
	t.Flush()
	printf(w, "%s\n", verdict(r, err))
}

// compared says what a level that found nothing wrong has compared.
func compared(r *pipeline.VerifyReport) string {
	switch r.Level {
	case pipeline.LevelFull:
		return "all 16 bits of every weight: 0 differ"
	case pipeline.LevelProof:
		return fmt.Sprintf("%s rebuilt: every sha256 is %s", count(r.Files, "original file"),
			choose(r.Published, "the published one", "the original's"))
	}
	return "headers, tables, positions and completeness; no weight was compared; without --level equality is checked"
}
