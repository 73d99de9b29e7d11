package pipeline

import (
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/model"
	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/target"
)

// upToDate gives the report of a run that finds in every target all that it would put there, and nil of any other. Such a run writes
// nothing, reads no weight of a repo and claims nothing: the manifest that is there stays the word of whoever made it.
func (c *conversion) upToDate(ctx context.Context) (*Report, error) {
	if !c.Part.Whole() {
		uncommitted := func(o *spans.Output) bool {
			made, _ := c.ledger.Output(o.Path)
			return !made.Committed
		}
		if slices.ContainsFunc(c.Part.Of(c.outputs), uncommitted) {
			return nil, nil
		}
		report := c.partReport()
		report.UpToDate = true
		return report, nil
	}
	if len(c.pending()) > 0 || c.folder.Stays && !c.folder.IsCurrent() || c.repo != nil && !c.repo.IsCurrent() {
		return nil, nil
	}
	want, err := c.sideSums(ctx)
	if err != nil {
		return nil, err
	}
	report := c.report()
	report.UpToDate = true
	if c.folder.Stays {
		if !c.lists(c.folder.Manifest, want) {
			return nil, nil
		}
		report.Folder, report.ManifestSHA256 = c.OutDir, c.folder.ManifestSHA256()
	}
	if c.repo != nil {
		if !c.lists(c.repo.Manifest(), want) {
			return nil, nil
		}
		report.Repo, report.URL, report.TargetCommit = c.repo.Repo, c.repo.URL(), c.repo.LastCommit()
		report.ManifestSHA256 = c.repo.ManifestSHA256()
		c.removeBranches(ctx)
	}
	return report, nil
}

// sideSums are the sha256 of the files beside the weights that a plan does not pin: config.json, and what is copied from a folder. That of
// a file which a commit pins is "".
func (c *conversion) sideSums(ctx context.Context) (map[string]string, error) {
	sums := map[string]string{}
	for _, f := range c.copier(0).files {
		sums[f.Path] = ""
		if !c.Model.Local {
			continue
		}
		sum, err := model.Sum(ctx, c.Source.OpenFile, plan.File{Path: f.Path}, "")
		if err != nil {
			return nil, err
		}
		sums[f.Path] = sum
	}
	config, err := metadata.Config(c.Plan, c.Model.Listing.Config)
	if config != nil {
		sums[c.Plan.ConfigPath()] = target.NewSideFile("", "", config).SHA256
	}
	return sums, err
}

// lists reports whether a manifest lists what this run would list.
func (c *conversion) lists(m *metadata.Manifest, want map[string]string) bool {
	if m.Source.Repo != c.baseModel() || m.Source.Commit != c.baseCommit() {
		return false
	}
	listed := map[string]string{}
	for _, f := range m.Outputs {
		listed[f.Path] = f.SHA256
	}
	for _, o := range c.ledger.Outputs() {
		want[o.Path] = o.SHA256
	}
	for path, sha := range want {
		if has, ok := listed[path]; !ok || sha != "" && sha != has {
			return false
		}
	}
	return true
}
