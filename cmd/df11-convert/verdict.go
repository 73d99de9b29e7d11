package main

import (
	"fmt"
	"io"

	"github.com/df11-convert/df11-convert/internal/back"
	"github.com/df11-convert/df11-convert/internal/compare"
	"github.com/df11-convert/df11-convert/pipeline"
	"github.com/df11-convert/df11-convert/verify"
)

// verdict is the outcome of a verification in one line that can be quoted. err is what is wrong, nil for nothing.
func verdict(r *pipeline.VerifyReport, err error) string {
	against := r.Against
	if r.AgainstFile != "" {
		against += " (" + r.AgainstFile + ")"
	}
	switch {
	case r.Equal:
		return fmt.Sprintf("%s equals %s (level %s)", r.Model, against, r.Level)
	case err == nil:
		return fmt.Sprintf("%s shows no fault against %s (level %s)", r.Model, against, r.Level)
	case wraps[*verify.MismatchError](err) || wraps[*compare.TensorError](err) || wraps[*back.RebuildError](err):
		return fmt.Sprintf("%s differs from %s: %v", r.Model, against, err)
	}
	return fmt.Sprintf("%s is damaged: %v", r.Model, err)
}

// originalHint says what to do where the model and the original may not belong together.
func originalHint(r *pipeline.VerifyReport, err error) string {
	switch {
	case r.OtherOriginal:
		return fmt.Sprintf("by its manifest the model was made from other files than those of %s: name its original, at the right commit, with --against", r.Against)
	case wraps[*verify.MismatchError](err) || wraps[*compare.TensorError](err):
		return fmt.Sprintf("if %s is not the original, name another with --against", r.Against)
	}
	return ""
}

// printVerifyReport writes what was checked, and how, and the verdict.
func printVerifyReport(w io.Writer, r *pipeline.VerifyReport, err error) {
	t := newTable(w)
	t.row("model", "%s%s", r.Model, atCommit(r.Commit))
	t.row("original", "%s", r.Against)
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
		t.row("sha256", "%d of %s compared with the manifest%s", r.Hashed, count(r.Listed, "file"),
			choose(r.OK, ": they are as the converter left them", ""))
	}
	if r.GPU != nil {
		t.row("GPU", "%d of %d modules once more: %s on %s", r.GPU.Units, r.Units, r.GPU.Kernel, r.GPU.Device)
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
		return fmt.Sprintf("%s rebuilt: every sha256 is %s", count(r.Files, "original file"), choose(r.Published, "the published one", "the original's"))
	}
	return "headers, tables, positions and completeness; no weight was compared; use --level proof or full to check equality"
}
