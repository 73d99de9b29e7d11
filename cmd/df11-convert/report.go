package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/pipeline"
)

// sizes adds lines about what was made of what.
func (t *table) sizes(r *pipeline.Report) {
	t.row("BF16", "%s", human.Bytes(r.BF16Bytes))
	t.row("DF11", "%s (%.2f %%)", human.Bytes(r.DF11Bytes), percentage(r.DF11Bytes, r.BF16Bytes))
	t.row("compressed", "%s (%s)", count(r.Units, "module"), count(r.Weights, "weight"))
	if r.Weights > 0 {
		t.row("exponents", "%.2f bits on average (8 in BF16)", float64(r.Bits)/float64(r.Weights))
	}
}

// printReport writes the outcome of a conversion for people.
func printReport(w io.Writer, r *pipeline.Report, waited time.Duration) {
	printf(w, "%s\n", r.Gain)
	t := newTable(w)
	t.row("source", "%s%s", r.Source, atCommit(r.Commit))
	t.row("part", "%s", strings.ReplaceAll(strings.TrimPrefix(r.Part, "part-"), "-", " "))
	if r.BaseModel != "" && r.Commit == "" {
		t.row("base model", "said to be %s%s", r.BaseModel, atCommit(r.BaseCommit))
	}
	if r.F32Bytes > 0 {
		t.row("as stored", "%s, in F32 weights that are BF16 numbers", human.Bytes(r.F32Bytes))
	}
	t.sizes(r)
	for _, u := range r.UnitsBF16 {
		t.row("stays BF16", "%s: it %s", u.Path, metadata.ReasonText(u.Reason))
	}
	for _, u := range r.TiesBroken {
		t.row("limiter tie",
			"%s: the official bytes depend on the machine here, ours follow one rule", u)
	}
	t.verified(r)
	t.row("folder", "%s", r.Folder)
	t.row(choose(r.Part == "", "published", "uploaded to"), "%s", r.URL)
	if r.Part != "" {
		t.row("left to do", "--finish, when all parts are uploaded")
	}
	t.row("time", "%s", stageTimes(r, waited))
	t.Flush()
}

// verified adds lines about what this run has verified: no journal and no manifest tells.
func (t *table) verified(r *pipeline.Report) {
	which := choose(r.Made == r.Files, "", " in "+count(r.Made, "file"))
	if r.Made > 0 {
		t.row("verified",
			"all 16 bits of every weight%s, decoded again and compared on the CPU%s: 0 differ",
			which, choose(r.GPU, " and on the GPU", ""))
	}
	if r.Rebuilt > 0 {
		t.row("rebuilt", "%s of the original, from the stored bytes: every sha256 is the same",
			count(r.Rebuilt, "file"))
	}
	if r.Part != "" && r.Made < r.Files {
		t.row("not verified", "%s of earlier runs", count(r.Files-r.Made, "file"))
	}
}

// stageTimes gives the wall time, how much of it the run has waited for a Hub, and the time for
// which each stage was at work.
func stageTimes(r *pipeline.Report, waited time.Duration) string {
	text := fmt.Sprintf("%.1f s", r.Seconds)
	if waited > 0 {
		text += fmt.Sprintf(" (%.0f s waiting for the Hub)", waited.Seconds())
	}
	for _, s := range r.Stages {
		if s.Bytes > 0 {
			text += fmt.Sprintf(" · %s %.1f s", s.Stage, s.Busy.Seconds())
		}
	}
	return text
}
