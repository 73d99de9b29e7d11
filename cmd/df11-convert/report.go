package main

import (
	"io"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/pipeline"
)

// sizes adds the sizes before and after.
func (t *table) sizes(s pipeline.Sizes) {
	t.row("BF16", "%s", human.Bytes(s.BF16))
	t.row("DF11", "%s (%.1f%%)", human.Bytes(s.DF11), human.Percentage(s.DF11, s.BF16))
	t.row("compressed", "%s (%s)", human.Count(s.Units, "module"), human.Count(s.Weights, "weight"))
}

// printReport writes a conversion's outcome for people. publish is the command that publishes a
// result that is only in a folder, and check the one that compares it with its original,
// and finish the one that completes the parts of which it is one.
func printReport(w io.Writer, r *pipeline.Report, publish, check, finish string) {
	t := newTable(w)
	t.row("source", "%s%s", r.Source.Name, atCommit(r.Source.Commit))
	t.row("part", "%s", strings.ReplaceAll(strings.TrimPrefix(r.Target.Part, "part-"), "-", " "))
	if n := r.Source.Equal; n > 0 {
		t.row("equals", "%s%s, by the SHA-256 of %s", r.Source.Original,
			atCommit(r.Source.OriginalCommit), human.Count(n, "weight file"))
	}
	if r.Sizes.F32 > 0 {
		t.row("as stored", "%s; F32 in compressed modules is exact in BF16", human.Bytes(r.Sizes.F32))
	}
	t.sizes(r.Sizes)
	if r.Target.Part == "" {
		t.row("note", "%s", r.Note)
	}
	for _, u := range r.Made.UnitsBF16 {
		t.row("stays BF16", "%s: it %s", u.Path, metadata.ReasonText(u.Reason))
	}
	t.verified(r)
	t.row("folder", "%s", r.Target.Folder)
	t.row(choose(r.Target.Part == "", "published", "uploaded to"), "%s", r.Target.URL)
	if r.Target.Part != "" {
		t.row("left to do", "%s, when all parts are uploaded", finish)
	}
	t.row("time", "%.1f s", r.Made.Seconds)
	t.row("to check", "%s", check)
	if r.Target.URL == "" && !r.Unloadable {
		t.row("to publish", "%s", publish)
	}
	t.Flush()
}

// verified adds what this run itself verified. It doesn't repeat claims of journals and manifests.
func (t *table) verified(r *pipeline.Report) {
	which := choose(r.Made.Now == r.Made.Files, "", " in "+human.Count(r.Made.Now, "file"))
	if r.Made.Now > 0 {
		t.row("verified",
			"all 16 bits of every weight%s, decoded again and compared%s %s: 0 differ",
			which, choose(r.Decoded == "", "", " with what the source decodes to,"), on(r.Verified.By))
	}
	if r.Decoded != "" {
		t.row("the source", "decodes, by SHA-256, to %s", r.Decoded)
	}
	if r.Verified.Rebuilt > 0 {
		t.row("rebuilt", "%s of the original from the stored bytes: every SHA-256 matches",
			human.Count(r.Verified.Rebuilt, "file"))
	}
	if r.Verified.Earlier > 0 {
		t.row("taken over", "%s; the manifest says that an earlier run verified them",
			human.Count(r.Verified.Earlier, "weight"))
	}
	if r.Target.Part != "" && r.Made.Now < r.Made.Files {
		t.row("not verified", "%s of earlier runs", human.Count(r.Made.Files-r.Made.Now, "file"))
	}
}

// on says what made a comparison: "on the CPU and on the GPU".
func on(list []pipeline.Verification) string {
	var parts []string
	for _, v := range list {
		if v.NUnits == list[0].NUnits {
			parts = append(parts, "on the "+strings.ToUpper(v.Method))
		}
	}
	return strings.Join(parts, " and ")
}
