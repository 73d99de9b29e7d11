package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/df11-convert/df11-convert/internal/forward"
	"github.com/df11-convert/df11-convert/internal/metadata"
	"github.com/df11-convert/df11-convert/internal/names"
	"github.com/df11-convert/df11-convert/internal/target"
)

// complete brings over what is copied, makes everything else beside the weights, and has each
// target take the result.
func (c *conversion) complete(ctx context.Context) (*Report, error) {
	c.freeBuffers()
	sources, err := c.sourceFiles()
	if err != nil {
		return nil, err
	}
	disk, err := c.freeDisk(nil, 0)
	if err != nil {
		return nil, err
	}
	copied, err := c.copier(disk).copyAll(ctx)
	if err != nil {
		return nil, err
	}
	report := c.report()
	// what this run has not compared is in a source file that it has rebuilt
	report.Verified = report.Weights
	for _, f := range sources {
		if f.Integrity == metadata.Proof {
			report.Rebuilt++
		}
	}
	m := c.manifest(sources)
	files, err := c.sideFiles(copied, m, report)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.Path == names.Manifest {
			report.ManifestSHA256 = f.SHA256
		}
	}
	result := &target.Result{
		Files: files, Outputs: c.ledger.Outputs(),
		Summary: fmt.Sprintf("Add %s as DF11", c.Model.ID),
		Description: fmt.Sprintf(
			"Made by df11-convert %s from %s at %s; every weight was decoded again and compared.",
			c.Version, c.Model.ID, cmp.Or(c.Model.Commit, "an unpinned revision")),
	}
	if c.folder.Stays {
		if err := c.folder.Finish(ctx, result); err != nil {
			return nil, err
		}
		if c.folder.CardStays {
			c.Log.Warn("the card in " + c.OutDir +
				" is not of this program and stays as it is; --force overwrites it")
		}
	}
	if c.repo != nil {
		if err := c.repo.Finish(ctx, result); err != nil {
			return nil, err
		}
		if c.repo.Found().CardStays {
			c.Log.Warn("the card of " + c.repo.Repo +
				" is not of this program and stays as it is; --force overwrites it")
		}
		report.TargetCommit = c.repo.LastCommit()
	}
	return report, nil
}

// sideFiles lists everything beside the weights, in the order in which it appears: config.json
// last, and the manifest, which lists the others, before it.
func (c *conversion) sideFiles(files []target.SideFile, m *metadata.Manifest,
	report *Report) ([]target.SideFile, error) {
	if index := metadata.RemainderIndex(c.Plan); index != nil {
		files = append(files, target.NewSideFile(c.Plan.RemainderIndex, metadata.KindIndex, index))
	}
	card, err := c.card(m, report)
	if err != nil {
		return nil, err
	}
	files = append(files, target.NewSideFile(names.Card, metadata.KindCard, card))
	if c.hasChart() {
		chart, err := c.chart(m, report)
		if err != nil {
			return nil, err
		}
		files = append(files, target.NewSideFile(names.Chart, metadata.KindImage, chart))
	}
	config, err := metadata.Config(c.Plan, c.Model.Listing.Config)
	if err == nil {
		err = forward.CheckConfig(config, c.Plan)
	}
	if err != nil {
		return nil, err
	}
	if config != nil {
		files = append(files, target.NewSideFile(c.Plan.ConfigPath(), metadata.KindConfig, config))
	}
	for _, f := range files {
		m.Outputs = append(m.Outputs, f.OutputFile)
	}
	manifest, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	return slices.Insert(files, len(files)-min(1, len(config)),
		target.NewSideFile(names.Manifest, "", manifest)), nil
}

// sourceFiles says for the manifest what is known of each weight file.
func (c *conversion) sourceFiles() ([]metadata.SourceFile, error) {
	var out []metadata.SourceFile
	for _, w := range c.Model.Listing.Weights {
		known, ok := c.ledger.File(w.Path)
		if !ok {
			return nil, fmt.Errorf("source file %s: its hash was never checked", w.Path)
		}
		out = append(out, metadata.SourceFile{
			Path: w.Path, Size: w.Size, SHA256: known.SHA256, Integrity: known.Integrity,
			Header: string(w.Header.Raw),
		})
	}
	return out, nil
}
