package pipeline

import (
	"context"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/target"
)

// upToDate gives the report of a run that finds in every target all that it would put there, and
// nil of any other. Such a run writes nothing, reads no weight of a repo and claims nothing: the
// manifest that is there stays the word of whoever made it.
func (c *conversion) upToDate(ctx context.Context) (*Report, error) {
	if len(c.pending())+len(c.leftovers()) > 0 {
		return nil, nil
	}
	report := c.report()
	report.UpToDate = true
	if !c.Part.Whole() {
		return report, nil
	}
	want, err := c.wanted(ctx)
	if err != nil {
		return nil, err
	}
	current := func(in *target.Inspection) bool {
		report.ManifestSHA256 = in.ManifestSHA256()
		return in.Current && c.lists(in.Manifest, want)
	}
	if c.folder.Stays && !current(c.folder.Inspection) || c.repo != nil &&
		!current(c.repo.Found()) {
		return nil, nil
	}
	if c.repo != nil {
		report.TargetCommit = c.repo.LastCommit()
		c.removeBranches(ctx)
	}
	return report, nil
}

// wanted are the sha256 of all files of the result that are known, and "" of those that a commit
// pins.
func (c *conversion) wanted(ctx context.Context) (sums map[string]string, err error) {
	sums = map[string]string{}
	for _, f := range c.carried() {
		if sums[f.Path], err = c.sourceSum(ctx, f.Path); err != nil {
			return nil, err
		}
	}
	for _, o := range c.ledger.Outputs() {
		sums[o.Path] = o.SHA256
	}
	config, err := metadata.Config(c.Plan, c.Model.Listing.Config)
	if config != nil {
		sums[c.Plan.ConfigPath()] = target.NewSideFile("", "", config).SHA256
	}
	return sums, err
}

// lists reports whether a manifest lists what this run would list.
func (c *conversion) lists(m *metadata.Manifest, want map[string]string) bool {
	listed := map[string]string{}
	for _, f := range m.Outputs {
		listed[f.Path] = f.SHA256
	}
	for path, sha := range want {
		if has, ok := listed[path]; !ok || sha != "" && sha != has {
			return false
		}
	}
	return m.Source.Repo == c.baseModel() && m.Source.Commit == c.baseCommit()
}
