package pipeline

import (
	"context"
	"slices"

	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/spans"
	"github.com/df11-convert/df11-convert/internal/streams"
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
	if !c.finished() || len(c.pending()) > 0 {
		return nil, nil
	}
	want, err := c.sideSums(ctx)
	if err != nil {
		return nil, err
	}
	report := c.report()
	report.UpToDate = true
	if c.folder.Stays {
		if same, err := c.folderHolds(ctx); err != nil || !same || !c.lists(c.folder.Manifest, want) {
			return nil, err
		}
		report.Folder = c.OutDir
		report.ManifestSHA256, err = c.folder.Found(ctx, metadata.ManifestName)
	}
	if c.repo != nil && err == nil {
		if !c.repo.IsCurrent() || !c.lists(c.repo.Manifest(), want) {
			return nil, nil
		}
		report.Repo, report.URL, report.TargetCommit = c.repo.Repo, c.repo.URL(), c.repo.LastCommit()
		report.ManifestSHA256, err = c.repo.Found(ctx, metadata.ManifestName)
		c.removeBranches(ctx)
	}
	return report, err
}

// finished reports whether every target has a manifest of this plan.
func (c *conversion) finished() bool {
	by := func(m *metadata.Manifest) bool { return m != nil && m.Plan.Digest == c.Plan.Digest() }
	return (!c.folder.Stays || by(c.folder.Manifest)) && (c.repo == nil || by(c.repo.Manifest()))
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
		in, err := c.Source.OpenFile(ctx, f.Path)
		if err != nil {
			return nil, err
		}
		sums[f.Path], err = streams.SHA256(ctx, in)
		in.Close()
		if err != nil {
			return nil, err
		}
	}
	config, err := metadata.Config(c.Plan, c.Model.Listing.Config)
	if config != nil {
		sums[c.Plan.ConfigPath()] = target.NewSideFile("", "", config).SHA256
	}
	return sums, err
}

// folderHolds reports whether the folder has every file that its manifest lists. A card and its picture are for people, who may have
// changed them.
func (c *conversion) folderHolds(ctx context.Context) (bool, error) {
	for _, f := range c.folder.Manifest.Outputs {
		if f.Kind == metadata.KindCard || f.Kind == metadata.KindImage {
			continue
		}
		if got, err := c.folder.Found(ctx, f.Path); err != nil || got != f.SHA256 {
			return false, err
		}
	}
	return true, nil
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
