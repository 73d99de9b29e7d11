package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/reader"
	"github.com/df11-convert/df11-convert/pipeline"
)

// verification is the outcome of verify as --json prints it.
type verification struct {
	*pipeline.VerifyReport
	Verdicts verdicts `json:"verdicts"`
}

// verdicts are the verdicts about the model, the pair, and the other files: docs/verify.md.
type verdicts struct {
	Model subject `json:"model"`
	Pair  subject `json:"pair"`
	Files subject `json:"files"`
}

// subject is the verdict about one of them.
type subject struct {
	Verdict string `json:"verdict"`
	Exit    int    `json:"exit_code"`
	Why     string `json:"why,omitempty"`
	err     error  // what ends the program, unless an earlier subject does
}

// judge returns the three verdicts. If strict is set, other files that differ are an error.
func judge(r *pipeline.VerifyReport, strict bool) *verification {
	v := &verification{VerifyReport: r}
	slices.SortFunc(r.Beside, byUse)
	v.Verdicts.Model = faulty(r.Damage, "damaged", "well_formed")
	v.Verdicts.Pair = judgePair(r)
	files := &v.Verdicts.Files
	switch {
	case len(r.Beside) > 0:
		files.Verdict, files.Why = "different", human.Message("%v", besideOf(r))
	case r.FilesCompared:
		files.Verdict = "same"
	default:
		files.Verdict = "not_compared"
	}
	if strict && len(r.Beside) > 0 {
		files.Exit, files.err = exitFiles, besideOf(r)
	}
	return v
}

// judgePair returns the verdict about the model and its original.
func judgePair(r *pipeline.VerifyReport) subject {
	switch {
	case r.NoOriginal != nil && r.Damage == nil:
		return faulty(r.NoOriginal, "no_original", "")
	case r.Difference == nil:
		return subject{Verdict: choose(r.Equal.Shown(), "same_weights", "not_compared")}
	case errors.Is(r.Difference, pipeline.ErrOtherOriginal):
		return faulty(r.Difference, "other_original", "")
	}
	return faulty(r.Difference, "different_weights", "")
}

// String returns the verdict in words, and why.
func (s subject) String() string {
	return strings.ReplaceAll(s.Verdict, "_", " ") + choose(s.Why == "", "", ": "+s.Why)
}

// faulty returns the verdict bad with its error, or good if err is nil.
func faulty(err *pipeline.Error, bad, good string) subject {
	if err == nil {
		return subject{Verdict: good}
	}
	return subject{bad, kindOf(err).code, human.Message("%v", err), err}
}

// byUse orders files by what programs do with them: first the files they run, then those they open.
// Within these, files that the original has come before added ones.
func byUse(a, b pipeline.OtherFile) int {
	added := func(o pipeline.OtherFile) int { return choose(o.How == pipeline.Added, 1, 0) }
	return cmp.Or(cmp.Compare(reader.UseOf(a.Path), reader.UseOf(b.Path)),
		cmp.Compare(added(a), added(b)), human.CompareNames(a.Path, b.Path))
}

// verdict returns the outcome of a verification in one line that you can quote.
func (v *verification) verdict() string {
	r := v.VerifyReport
	against := r.Against
	if r.AgainstOnMain != nil && !*r.AgainstOnMain {
		against += "@" + r.AgainstCommit + ", " + notOnMain + ","
	}
	if part := cmp.Or(r.AgainstFile, r.Component); part != "" {
		against += " (" + part + ")"
	}
	others := ""
	if len(r.Unfilled) > 0 {
		others = "; no known reader gives every module its weights: " + r.Unfilled[0]
	}
	if n := len(r.TensorsLeftOut); n > 0 {
		others += fmt.Sprintf("; the original has %s more, of other models", human.Count(n, "tensor"))
	}
	if len(r.Beside) > 0 {
		others += "; " + besideOf(r).Error()
	}
	switch {
	case r.Damage != nil && !r.Located:
		return fmt.Sprintf("%s is damaged: %v", r.Model, r.Damage)
	case r.Difference != nil:
		return fmt.Sprintf("%s differs from %s: %s", r.Model, against, v.Verdicts.Pair.Why)
	case r.Against == "" && r.Files > 0:
		is := choose(len(r.Beside) == 0, "%s is", "the weights of %s are")
		return fmt.Sprintf(is+" what the manifest says; no original was compared%s", r.Model, others)
	case r.Against == "":
		return fmt.Sprintf("%s shows no fault (level %s)%s", r.Model, r.Level, others)
	case !r.Equal.Shown():
		return fmt.Sprintf("%s shows no fault against %s (level %s)%s", r.Model, against, r.Level,
			others)
	case others != "":
		return fmt.Sprintf("%s against %s (level %s): weights equal%s", r.Model, against, r.Level,
			others)
	}
	return fmt.Sprintf("%s equals %s (level %s)", r.Model, against, r.Level)
}

// notOnMain describes an original whose files differ from main's, when the model itself chose it.
const notOnMain = "an older or unmerged commit"

// errFilesDiffer is what a besideError wraps.
var errFilesDiffer = errors.New("other files differ")

// besideError lists the files next to the weights that differ from the original's, or from the
// manifest if there's no original. It always names those that a program runs or opens. It ends a
// verification with --strict-files.
type besideError struct {
	files []pipeline.OtherFile
	from  string // what they were compared with
}

func besideOf(r *pipeline.VerifyReport) besideError {
	return besideError{r.Beside, choose(r.Against == "", "the manifest", "the original")}
}

func (besideError) Unwrap() error { return errFilesDiffer }

func (e besideError) Error() string {
	const most = 20 // for people; --json has all
	var names []string
	for _, o := range e.files {
		if len(names) < most || reader.UseOf(o.Path) != reader.Ignores {
			names = append(names, o.Path+choose(o.How == pipeline.Changed, "", " ("+string(o.How)+")"))
		}
	}
	n := len(e.files)
	more := choose(n > len(names), fmt.Sprintf(" and %d more", n-len(names)), "")
	return fmt.Sprintf("%s %s from %s: %s%s", human.Count(n, "other file"),
		choose(n == 1, "differs", "differ"), e.from, strings.Join(names, ", "), more)
}

// print writes what was checked and how, the three verdicts, and the outcome.
func (v *verification) print(w io.Writer) {
	r := v.VerifyReport
	t := newTable(w)
	t.row("model", "%s%s", r.Model, atCommit(r.Commit))
	onMain := ""
	if r.AgainstOnMain != nil {
		onMain = choose(*r.AgainstOnMain, ", the same weights as main", ", "+notOnMain)
	}
	t.row("original", "%s%s%s", cmp.Or(r.Against, "none was compared"), atCommit(r.AgainstCommit),
		onMain)
	t.row("level", "%s", r.Level)
	modules := human.Count(r.Units, "compressed module")
	if r.Equal.Shown() {
		modules += fmt.Sprintf(" (%s decoded)", human.Count(r.Weights, "weight"))
	}
	if r.BF16 > 0 {
		modules += fmt.Sprintf(", %s in BF16", human.Count(r.BF16, "module"))
	}
	t.row("checked", "%s, %s", modules, human.Count(r.Tensors, "copied tensor"))
	if r.OK {
		t.row("compared", "%s", compared(r))
	}
	for _, v := range r.Verified[min(1, len(r.Verified)):] {
		t.row(strings.ToUpper(v.Method), "%d of %d modules again: %s on %s", v.NUnits, r.Units,
			v.Decoder, v.Device)
	}
	if len(r.Unfilled) > 0 {
		t.row("unfilled", "no known reader fills these modules: %s",
			human.List(r.Unfilled))
	}
	for _, x := range r.Warnings {
		t.row("warning", "%s", x)
	}
	t.row("the model", "%s", v.Verdicts.Model)
	t.row("the pair", "%s", v.Verdicts.Pair)
	t.row("the files", "%s", v.Verdicts.Files)
	if r.DecodesAlone != nil {
		t.row("decode", "%s", decodes(r))
	}
	if len(r.LeftOut) > 0 {
		t.row("left out", "%s", leftOut(r.LeftOut))
	}
	if n := len(r.TensorsLeftOut); n > 0 {
		t.row("left out", "%s of the original belong to other models than the diffusion model: %s",
			human.Count(n, "tensor"), human.List(human.ByModule(r.TensorsLeftOut)))
	}
	if len(r.NotCompared) > 0 {
		t.row("not compared", "%s", human.List(r.NotCompared))
	}
	t.Flush()
	printf(w, "%s\n", v.verdict())
}

// compared returns what a level compared, for a model without faults.
func compared(r *pipeline.VerifyReport) string {
	switch r.Level {
	case pipeline.LevelFull:
		return "all 16 bits of every weight: 0 differ"
	case pipeline.LevelProof:
		return human.Count(r.Files, "original file") + " rebuilt: every SHA-256 matches"
	}
	const only = "structure only, no weight was compared"
	switch {
	case r.Against != "":
		return only + " (leave out --level to check equality)"
	case r.Files > 0:
		return human.Message("the SHA-256 of every weight file, and of %s rebuilt, with the manifest",
			human.Count(r.Files, "original file"))
	case r.NoOriginal == nil:
		return only + " (leave out --level to compare every SHA-256 with the manifest)"
	}
	return only
}

// decodes says whether the original's files can be restored without the original.
func decodes(r *pipeline.VerifyReport) string {
	if *r.DecodesAlone {
		return "restores the original's weight files from this model alone"
	}
	return human.Message("doesn't restore the original's weight files from this model alone: %s",
		r.WhyNotAlone)
}

// leftOut lists the original's files that no conversion copies, by the reason.
func leftOut(files []pipeline.Skipped) string {
	paths := map[string][]string{}
	for _, f := range files {
		paths[f.Why] = append(paths[f.Why], f.Path)
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(paths)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", human.List(paths[why]), why))
	}
	return strings.Join(parts, "; ")
}
