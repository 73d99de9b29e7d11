package convert

import (
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/ledger"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/publish"
	"github.com/df11-convert/df11-convert/internal/spans"
)

// upToDate returns a report if every target already holds the result. It returns nil otherwise, and
// with Force, which proves everything again. It writes no file, and reads no weight of a repo: the
// target's manifest remains a claim by the target's maker. It removes branches that earlier runs
// left in the repo.
func upToDate(ctx context.Context, j *job, t *targets) (*Report, error) {
	missing := func(o *spans.Output) bool { return !t.ledger.Done(o.Path) }
	if j.Force || len(leftovers(j, t)) > 0 ||
		slices.ContainsFunc(j.Part.Of(j.outputs), missing) {
		return nil, nil
	}
	report := newReport(j, t)
	report.Verified = Verified{UpToDate: true}
	if !j.Part.Whole() {
		return report, nil
	}
	files, err := j.expectedFiles(ctx, t.ledger)
	if err != nil {
		return nil, err
	}
	repo, commit := j.original()
	for _, found := range t.found() {
		if !found.Current {
			return nil, nil
		}
		differs := func(f names.File) bool {
			return !slices.ContainsFunc(found.Manifest.Outputs,
				func(o metadata.OutputFile) bool { return f.MayBe(o.File()) })
		}
		of := found.Manifest
		newer := of.Plan.Rules > plan.Rules // and may write another config or name
		if !newer && (of.Source.Repo != repo || of.Source.Commit != commit ||
			slices.ContainsFunc(files, differs)) {
			return nil, nil
		}
		r := &result{job: j, at: t.where(j), sizes: report.Sizes, manifest: &metadata.Manifest{}}
		if renewed, err := r.isRenewed(ctx, found, newer); err != nil || !renewed {
			return nil, err
		}
		report.Target.ManifestSHA256 = found.ManifestSHA256()
		if why := found.WhyCardStays(); why != "" && j.License == "" {
			j.Log.Warn(why + "; --force overwrites it")
		}
	}
	report.Target.Commit = t.release(ctx, j.Log)
	return report, nil
}

// isRenewed reports whether a target's card has the license that the run was given, the branch that
// holds it, and what the card of a local source says, because no commit pins that. Newer rules may
// word it differently. A card that isn't ours stays as it is.
func (r *result) isRenewed(ctx context.Context, found *publish.Inspection,
	newer bool) (bool, error) {
	pinned, at := !r.Model.Local || newer, r.at
	if r.License == "" && pinned && at.Branch == "" {
		return true, nil
	}
	card, err := found.Card(ctx)
	if err != nil {
		return false, err
	}
	if card == nil {
		if why := found.WhyCardStays(); why != "" && r.License != "" {
			r.Log.Warn(why + "; --license changes nothing there")
		}
		return true, nil
	}
	if r.License != "" && !metadata.HasLicense(card, r.License) {
		return false, nil
	}
	// a new branch begins with what main holds
	if at.Branch != "" && !metadata.NamesBranch(card, at.Repo, at.Branch) {
		return false, nil
	}
	if pinned {
		return true, nil
	}
	ours, err := r.card()
	return err == nil && metadata.HasFront(card, ours), err
}

// expectedFiles lists the files of the result that are known before it's finished: the outputs that
// are done, what is copied, without a SHA-256 if a commit pins it, and config.json.
func (j *job) expectedFiles(ctx context.Context,
	done *ledger.Ledger) (files []names.File, err error) {
	for _, o := range done.Outputs() {
		files = append(files, o.File())
	}
	for _, f := range j.carried() {
		sum, err := j.sourceSum(ctx, f)
		if err != nil {
			return nil, err
		}
		files = append(files, names.File{Path: f.Path, Size: f.Size, SHA256: sum})
	}
	config, err := j.config()
	if config != nil {
		side := publish.NewSideFile(j.Plan.ConfigPath(), metadata.KindConfig, config)
		files = append(files, side.File())
	}
	return files, err
}
